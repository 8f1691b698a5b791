/* SPDX-License-Identifier: GPL-2.0 */
/* SHA-256: a second implementation, to compare the module's digests with. */
#ifndef FAIRWQ_USER_SHA256_H
#define FAIRWQ_USER_SHA256_H

#include <stdio.h>
#include <string.h>

static const unsigned int round_constant[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static unsigned int ror(unsigned int x, int n)
{
	return x >> n | x << (32 - n);
}

static void sha256_expand(unsigned int w[64], const unsigned char *p)
{
	for (int i = 0; i < 16; i++, p += 4)
		w[i] = (unsigned int)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
	for (int i = 16; i < 64; i++) {
		unsigned int a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) +
		       w[i - 7] + (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
	}
}

static void sha256_block(unsigned int h[8], const unsigned char *p)
{
	unsigned int w[64], v[8];

	sha256_expand(w, p);
	memcpy(v, h, sizeof(v));
	for (int i = 0; i < 64; i++) {
		unsigned int e = v[4], a = v[0];
		unsigned int t1 = v[7] + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +
			      ((e & v[5]) ^ (~e & v[6])) + round_constant[i] + w[i];
		unsigned int t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) +
			      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(*v));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

/* Hash the tail: the last bytes, a one bit, zeros, and the length in bits. */
static void sha256_tail(unsigned int h[8], const unsigned char *rest, size_t nr_rest,
			unsigned long long len)
{
	unsigned char tail[128] = { 0 };
	size_t size = nr_rest < 56 ? 64 : 128;

	memcpy(tail, rest, nr_rest);
	tail[nr_rest] = 0x80;
	for (int i = 0; i < 8; i++)
		tail[size - 1 - i] = len * 8 >> 8 * i;
	for (size_t pos = 0; pos < size; pos += 64)
		sha256_block(h, tail + pos);
}

/* Write the digest of @data to @hex: 64 digits and a NUL. */
static inline void sha256_hex(char *hex, const void *data, size_t len)
{
	unsigned int h[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};
	const unsigned char *p = data;
	size_t full = len / 64 * 64;

	for (size_t pos = 0; pos < full; pos += 64)
		sha256_block(h, p + pos);
	sha256_tail(h, p + full, len - full, len);
	for (int i = 0; i < 8; i++)
		sprintf(hex + 8 * i, "%08x", h[i]);
}

#endif /* FAIRWQ_USER_SHA256_H */
