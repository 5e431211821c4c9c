/* SPDX-License-Identifier: MIT */
#ifndef QUIRE_PLANS_UTF8_IMPL_H
#define QUIRE_PLANS_UTF8_IMPL_H
/* UTF-8 as RFC 3629 has it: nothing overlong, no surrogates, nothing above U+10FFFF. */

/*
 * quire_utf8_length - bytes of the sequence at @text; 0: not valid there
 * @text:    borrowed; what ends it (a zero, a control character) continues no sequence
 */
static inline int quire_utf8_length(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	unsigned char first = at[0];
	unsigned char min = 0x80, max = 0xbf; /* of the second byte */
	int length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	if ((first >= 0x80 && first < 0xc2) || first > 0xf4)
		return 0;
	if (first == 0xe0)
		min = 0xa0;
	else if (first == 0xed)
		max = 0x9f;
	else if (first == 0xf0)
		min = 0x90;
	else if (first == 0xf4)
		max = 0x8f;
	for (int i = 1; i < length; i++) {
		if (at[i] < min || at[i] > max)
			return 0;
		min = 0x80;
		max = 0xbf;
	}
	return length;
}

#endif
