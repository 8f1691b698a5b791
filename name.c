// SPDX-License-Identifier: GPL-2.0
/*
 * Names: what of a driver's text reaches the log, tables and traces.
 *
 * Drivers name pools and batches after devices and clients, and a client may
 * choose the name of its process. Whatever that is, a name is one line of
 * UTF-8, which does nothing to a terminal, and leaves room for the rest of the
 * line:
 *
 *   Of the text                                     becomes
 *   ----------------------------------------------  -----------------------------
 *   a byte that is no UTF-8                         '?'
 *   a character that a terminal obeys: a control,   '?'
 *   the end of a line, a change of direction
 *   what follows after FAIRWQ_MAX_NAME bytes        nothing
 *   " batch=", which ends a pool's name in a trace  " batch?"
 *
 * All else stays, also spaces and what looks like another column. So each line
 * of a table or trace has one name whose end is to be found from the end of the
 * line. A pool's name stands before that of its batch in a trace, and ends at "
 * batch=".
 *
 * Locking: none.
 */
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "doors.h"

/* Characters that a terminal obeys. */
static const struct {
	u32 first, last;
} fairwq_obeyed[] = {
	{ 0x0000, 0x001f }, { 0x007f, 0x009f },	/* controls */
	{ 0x061c, 0x061c }, { 0x200e, 0x200f },	/* marks of a direction */
	{ 0x2028, 0x202e },	/* ends of lines and paragraphs, directions */
	{ 0x2066, 0x2069 },	/* directions */
};

/*
 * Return the character of UTF-8 at @text, and set @len to its length;
 * 0, which is not shown, and 1, if there is none.
 */
static u32 character_at(const char *text, unsigned int *len)
{
	static const u32 least[] = { 0, 0x80, 0x800, 0x10000 };
	const u8 *s = (const u8 *)text;
	unsigned int more = *s < 0xc0 ? 0 : *s < 0xe0 ? 1 : *s < 0xf0 ? 2 : 3, i;
	u32 c = more ? *s & (0x3f >> more) : *s;

	*len = 1;
	if ((*s >= 0x80 && *s < 0xc0) || *s > 0xf4)
		return 0;
	for (i = 1; i <= more; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*len = more + 1;
	return c;
}

/* Check whether @c may stand in a name. */
static bool is_shown(u32 c)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fairwq_obeyed); i++)
		if (c >= fairwq_obeyed[i].first && c <= fairwq_obeyed[i].last)
			return false;
	return true;
}

/* Make @name one for the log, tables and traces. Return: @name. */
char *fairwq_clean_name(char *name)
{
	const char *from = name;
	char *to = name;
	unsigned int len;
	bool shown;

	while (*from) {
		shown = is_shown(character_at(from, &len));
		if (to + (shown ? len : 1) > name + FAIRWQ_MAX_NAME)
			break;
		if (shown)
			memmove(to, from, len);
		else
			*to = '?';
		to += shown ? len : 1;
		from += len;
	}
	*to = '\0';
	while ((to = strstr(name, " batch=")))
		to[6] = '?';
	return name;
}

/* Make a name for the log, tables and traces. Return: the name, or NULL. */
char *fairwq_make_name(const char *fmt, va_list args)
{
	char name[FAIRWQ_MAX_NAME + 4];	/* the last character may have 3 bytes more */

	vsnprintf(name, sizeof(name), fmt, args);
	return kstrdup(fairwq_clean_name(name), GFP_KERNEL);
}
