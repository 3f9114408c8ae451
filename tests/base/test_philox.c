// SPDX-License-Identifier: MIT
// Philox 4x32-10 against the published known answers (Random123, kat_vectors).

#include "base/philox.h"
#include "support/test.h"

NO_DEVICE;

TEST(known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], word[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); ++i) {
        uint32_t word[4];
        attncl__philox4x32(rows[i].counter, rows[i].key, word);
        for (int k = 0; k < 4; ++k)
            ck_assert_uint_eq(word[k], rows[i].word[k]);
    }
}
