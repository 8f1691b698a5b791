/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory as other CPUs see it: a store waits in its CPU's buffer and gets to
 * memory at any later time. A model that includes this must define VARS, and
 * number its variables 1 .. VARS - 1. Variable 0 is a spinlock, LOCK.
 *
 * A CPU sees its own stores at once. Stores to one variable keep their order.
 * Stores to different variables may get to memory in either order, and a load
 * may be done before the stores in front of it. So this is weaker than x86,
 * where stores keep their order. It is stronger than arm64 or the kernel's
 * memory model, because loads are done where they stand, and all CPUs see one
 * memory. A model that needs an early load must do it by hand.
 *
 * A store_release() waits in the buffer until all earlier stores have left, as
 * on ARM. It is no barrier for later accesses. smp_mb() waits until the buffer
 * is empty. A read-modify-write that returns a value, as xchg() and cmpxchg(),
 * is fully ordered: RMW() in front of it does the same as smp_mb(). To take a
 * spinlock is only an acquire, to drop it a release.
 */
#define CPUS	3
#define LOCK	0		/* pool->lock, in most models */

/* Stores that fit into the buffer. A CPU with more must wait. */
#define DEPTH	3

byte mem[VARS];

typedef store_buffer {
	byte var[DEPTH];
	byte val[DEPTH];
	bool release[DEPTH];
	byte n
}
store_buffer sb[CPUS];

inline put(cpu, v, x, rel)
{
	d_step {
		sb[cpu].n < DEPTH ->
		sb[cpu].var[sb[cpu].n] = v;
		sb[cpu].val[sb[cpu].n] = x;
		sb[cpu].release[sb[cpu].n] = rel;
		sb[cpu].n++
	}
}

#define write_once(cpu, v, x)		put(cpu, v, x, false)
#define store_release(cpu, v, x)	put(cpu, v, x, true)

/* Store @x, as xchg() and a cmpxchg() that finds 0 do. */
#define xchg(cpu, v, x)		d_step { RMW(cpu) -> mem[v] = x }
#define cmpxchg_0(cpu, v, x)	d_step { RMW(cpu) && mem[v] == 0 -> mem[v] = x }

#define in_buffer(c, i, v)	(sb[c].n > i && sb[c].var[i] == v)

inline read_once(cpu, v, to)
{
	d_step {
		to = (in_buffer(cpu, 2, v) -> sb[cpu].val[2] :
		      (in_buffer(cpu, 1, v) -> sb[cpu].val[1] :
		       (in_buffer(cpu, 0, v) -> sb[cpu].val[0] : mem[v])))
	}
}

#define smp_mb(cpu)	(sb[cpu].n == 0)
#define RMW(cpu)	(sb[cpu].n == 0)
#define all_seen	(sb[0].n + sb[1].n + sb[2].n == 0)

#define lock(l)			d_step { mem[l] == 0 -> mem[l] = 1 }
#define unlock(cpu, l)		store_release(cpu, l, 0)
#define spin_lock(cpu)		lock(LOCK)
#define spin_unlock(cpu)	unlock(cpu, LOCK)

/* Entry @i may leave before @j: another variable, and @i is no release. */
#define first_of(c, i, j) \
	(sb[c].var[i] != sb[c].var[j] && !sb[c].release[i])
#define may_leave_0(c)	(sb[c].n > 0)
#define may_leave_1(c)	(sb[c].n > 1 && first_of(c, 1, 0))
#define may_leave_2(c)	(sb[c].n > 2 && first_of(c, 2, 0) && first_of(c, 2, 1))

#define move(c, to, from) \
	sb[c].var[to] = sb[c].var[from]; \
	sb[c].val[to] = sb[c].val[from]; \
	sb[c].release[to] = sb[c].release[from]
#define clear_last(c) \
	sb[c].var[2] = 0; sb[c].val[2] = 0; sb[c].release[2] = false; sb[c].n--

#define DRAIN(c) \
	:: d_step { may_leave_0(c) -> mem[sb[c].var[0]] = sb[c].val[0]; \
		    move(c, 0, 1); move(c, 1, 2); clear_last(c) } \
	:: d_step { may_leave_1(c) -> mem[sb[c].var[1]] = sb[c].val[1]; \
		    move(c, 1, 2); clear_last(c) } \
	:: d_step { may_leave_2(c) -> mem[sb[c].var[2]] = sb[c].val[2]; \
		    clear_last(c) }

proctype memory()
{
end:	do
	DRAIN(0)
	DRAIN(1)
	DRAIN(2)
	od
}
