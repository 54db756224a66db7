// What the wrappers of codegen/cuda/device/cuda.h give, lane by lane: written down from the fragment tables of the PTX
// ISA (mma.m16n8k16, ldmatrix), not from either twin, which are both held against it.
#pragma once

#include <cstdint>

namespace tessera::test {

// multiply_add. left [r, k] = ((7 r + 3 k) mod 23 - 11) / 4, right [k, n] = ((5 k + 11 n) mod 19 - 9) / 2,
// sum [r, n] = (8 r + n) mod 13 - 6: all exact.
/// Of a lane: four pairs of bf16, the first of a pair in the lower half.
inline constexpr std::uint32_t left_fragments[32][4] = {
    {0xc000c030, 0x3f00be80, 0xbfe0c020, 0x3f400000}, {0xbf00bfa0, 0x40003fa0, 0xbe80bf80, 0x40103fc0},
    {0x3f803e80, 0xc0104030, 0x3fa03f00, 0xc000c030}, {0x40203fe0, 0xbf40bfc0, 0x40304000, 0xbf00bfa0},
    {0xbe80bf80, 0x40103fc0, 0x0000bf40, 0x40203fe0}, {0x3fa03f00, 0xc000c030, 0x3fc03f40, 0xbfe0c020},
    {0x40304000, 0xbf00bfa0, 0xc0304010, 0xbe80bf80}, {0xbfc0c010, 0x3f803e80, 0xbfa0c000, 0x3fa03f00},
    {0x3fc03f40, 0xbfe0c020, 0x3fe03f80, 0xbfc0c010}, {0xc0304010, 0xbe80bf80, 0xc0204020, 0x0000bf40},
    {0xbfa0c000, 0x3fa03f00, 0xbf80bfe0, 0x3fc03f40}, {0x3e80bf00, 0x40304000, 0x3f00be80, 0xc0304010},
    {0xc0204020, 0x0000bf40, 0xc0104030, 0x3e80bf00}, {0xbf80bfe0, 0x3fc03f40, 0xbf40bfc0, 0x3fe03f80},
    {0x3f00be80, 0xc0304010, 0x3f400000, 0xc0204020}, {0x40003fa0, 0xbfa0c000, 0x40103fc0, 0xbf80bfe0},
    {0xbf40bfc0, 0x3fe03f80, 0xbf00bfa0, 0x40003fa0}, {0x3f400000, 0xc0204020, 0x3f803e80, 0xc0104030},
    {0x40103fc0, 0xbf80bfe0, 0x40203fe0, 0xbf40bfc0}, {0xc000c030, 0x3f00be80, 0xbfe0c020, 0x3f400000},
    {0x3f803e80, 0xc0104030, 0x3fa03f00, 0xc000c030}, {0x40203fe0, 0xbf40bfc0, 0x40304000, 0xbf00bfa0},
    {0xbfe0c020, 0x3f400000, 0xbfc0c010, 0x3f803e80}, {0xbe80bf80, 0x40103fc0, 0x0000bf40, 0x40203fe0},
    {0x40304000, 0xbf00bfa0, 0xc0304010, 0xbe80bf80}, {0xbfc0c010, 0x3f803e80, 0xbfa0c000, 0x3fa03f00},
    {0x0000bf40, 0x40203fe0, 0x3e80bf00, 0x40304000}, {0x3fc03f40, 0xbfe0c020, 0x3fe03f80, 0xbfc0c010},
    {0xbfa0c000, 0x3fa03f00, 0xbf80bfe0, 0x3fc03f40}, {0x3e80bf00, 0x40304000, 0x3f00be80, 0xc0304010},
    {0x3fe03f80, 0xbfc0c010, 0x40003fa0, 0xbfa0c000}, {0xc0204020, 0x0000bf40, 0xc0104030, 0x3e80bf00}};
/// Two pairs.
inline constexpr std::uint32_t right_fragments[32][2] = {
    {0xc000c090, 0xbf80c060}, {0x40403f00, 0x40803fc0}, {0xbfc0c080, 0xbf00c040}, {0x40603f80, 0x40904000},
    {0x40603f80, 0x40904000}, {0xbf80c060, 0x0000c020}, {0x40803fc0, 0xc0904020}, {0xbf00c040, 0x3f00c000},
    {0xbf00c040, 0x3f00c000}, {0x40904000, 0xc0804040}, {0x0000c020, 0x3f80bfc0}, {0xc0904020, 0xc0604060},
    {0xc0904020, 0xc0604060}, {0x3f00c000, 0x3fc0bf80}, {0xc0804040, 0xc0404080}, {0x3f80bfc0, 0x4000bf00},
    {0x3f80bfc0, 0x4000bf00}, {0xc0604060, 0xc0204090}, {0x3fc0bf80, 0x40200000}, {0xc0404080, 0xc000c090},
    {0xc0404080, 0xc000c090}, {0x4000bf00, 0x40403f00}, {0xc0204090, 0xbfc0c080}, {0x40200000, 0x40603f80},
    {0x40200000, 0x40603f80}, {0xc000c090, 0xbf80c060}, {0x40403f00, 0x40803fc0}, {0xbfc0c080, 0xbf00c040},
    {0xbfc0c080, 0xbf00c040}, {0x40603f80, 0x40904000}, {0xbf80c060, 0x0000c020}, {0x40803fc0, 0xc0904020}};
/// Four sums.
inline constexpr float sums_before[32][4] = {
    {-6.0f, -5.0f, 6.0f, -6.0f},  {-4.0f, -3.0f, -5.0f, -4.0f}, {-2.0f, -1.0f, -3.0f, -2.0f},
    {0.0f, 1.0f, -1.0f, 0.0f},    {2.0f, 3.0f, 1.0f, 2.0f},     {4.0f, 5.0f, 3.0f, 4.0f},
    {6.0f, -6.0f, 5.0f, 6.0f},    {-5.0f, -4.0f, -6.0f, -5.0f}, {-3.0f, -2.0f, -4.0f, -3.0f},
    {-1.0f, 0.0f, -2.0f, -1.0f},  {1.0f, 2.0f, 0.0f, 1.0f},     {3.0f, 4.0f, 2.0f, 3.0f},
    {5.0f, 6.0f, 4.0f, 5.0f},     {-6.0f, -5.0f, 6.0f, -6.0f},  {-4.0f, -3.0f, -5.0f, -4.0f},
    {-2.0f, -1.0f, -3.0f, -2.0f}, {0.0f, 1.0f, -1.0f, 0.0f},    {2.0f, 3.0f, 1.0f, 2.0f},
    {4.0f, 5.0f, 3.0f, 4.0f},     {6.0f, -6.0f, 5.0f, 6.0f},    {-5.0f, -4.0f, -6.0f, -5.0f},
    {-3.0f, -2.0f, -4.0f, -3.0f}, {-1.0f, 0.0f, -2.0f, -1.0f},  {1.0f, 2.0f, 0.0f, 1.0f},
    {3.0f, 4.0f, 2.0f, 3.0f},     {5.0f, 6.0f, 4.0f, 5.0f},     {-6.0f, -5.0f, 6.0f, -6.0f},
    {-4.0f, -3.0f, -5.0f, -4.0f}, {-2.0f, -1.0f, -3.0f, -2.0f}, {0.0f, 1.0f, -1.0f, 0.0f},
    {2.0f, 3.0f, 1.0f, 2.0f},     {4.0f, 5.0f, 3.0f, 4.0f}};
/// And what they become.
inline constexpr float sums_behind[32][4] = {
    {38.5f, -29.375f, 16.0f, -6.875f},    {-7.0f, -1.25f, -4.875f, 4.25f},       {-19.25f, 19.75f, -10.375f, 32.0f},
    {-12.5f, 19.375f, -20.625f, 14.625f}, {-13.875f, 37.625f, -17.75f, 37.125f}, {-1.125f, 14.75f, -22.0f, -2.75f},
    {6.875f, -11.625f, -7.25f, -9.375f},  {4.25f, -8.375f, 27.75f, -36.125f},    {-10.25f, -3.25f, 14.625f, -29.625f},
    {6.125f, -22.5f, 14.0f, -11.25f},     {34.375f, -15.625f, -5.625f, 2.375f},  {-6.25f, -8.75f, -8.625f, 46.875f},
    {3.5f, -2.375f, -3.25f, 17.25f},      {-35.5f, 32.25f, -0.25f, 26.25f},      {-33.0f, 13.375f, -12.625f, 5.5f},
    {-6.75f, -22.125f, -12.0f, -1.0f},    {-18.75f, 8.5f, -8.25f, -0.625f},      {4.875f, -3.5f, 7.0f, -21.0f},
    {19.0f, -10.75f, 36.5f, -12.875f},    {40.25f, -9.625f, -5.25f, -7.125f},    {28.0f, -12.25f, 12.625f, -24.25f},
    {9.25f, -12.0f, -23.125f, 13.625f},   {-2.375f, 9.625f, -28.0f, 42.0f},      {-23.5f, 36.0f, -11.5f, -3.25f},
    {-10.0f, 14.5f, -16.75f, 11.125f},    {-25.125f, 18.375f, 5.75f, -2.0f},     {-29.5f, -7.375f, 21.125f, -21.0f},
    {7.625f, -32.0f, 28.25f, -8.0f},      {-3.5f, -23.5f, 7.0f, -9.625f},        {39.625f, -16.0f, 33.125f, -19.125f},
    {13.875f, -8.5f, 14.125f, -4.875f},   {0.0f, 25.125f, -16.75f, 11.75f}};

// load_matrices: lane i names row (5 i + 3) mod 32 of 32 rows of eight numbers, whose bits count from 0.
/// One pair of each matrix.
inline constexpr std::uint32_t matrices[32][4] = {
    {0x00190018, 0x00590058, 0x00990098, 0x00d900d8}, {0x001b001a, 0x005b005a, 0x009b009a, 0x00db00da},
    {0x001d001c, 0x005d005c, 0x009d009c, 0x00dd00dc}, {0x001f001e, 0x005f005e, 0x009f009e, 0x00df00de},
    {0x00410040, 0x00810080, 0x00c100c0, 0x00010000}, {0x00430042, 0x00830082, 0x00c300c2, 0x00030002},
    {0x00450044, 0x00850084, 0x00c500c4, 0x00050004}, {0x00470046, 0x00870086, 0x00c700c6, 0x00070006},
    {0x00690068, 0x00a900a8, 0x00e900e8, 0x00290028}, {0x006b006a, 0x00ab00aa, 0x00eb00ea, 0x002b002a},
    {0x006d006c, 0x00ad00ac, 0x00ed00ec, 0x002d002c}, {0x006f006e, 0x00af00ae, 0x00ef00ee, 0x002f002e},
    {0x00910090, 0x00d100d0, 0x00110010, 0x00510050}, {0x00930092, 0x00d300d2, 0x00130012, 0x00530052},
    {0x00950094, 0x00d500d4, 0x00150014, 0x00550054}, {0x00970096, 0x00d700d6, 0x00170016, 0x00570056},
    {0x00b900b8, 0x00f900f8, 0x00390038, 0x00790078}, {0x00bb00ba, 0x00fb00fa, 0x003b003a, 0x007b007a},
    {0x00bd00bc, 0x00fd00fc, 0x003d003c, 0x007d007c}, {0x00bf00be, 0x00ff00fe, 0x003f003e, 0x007f007e},
    {0x00e100e0, 0x00210020, 0x00610060, 0x00a100a0}, {0x00e300e2, 0x00230022, 0x00630062, 0x00a300a2},
    {0x00e500e4, 0x00250024, 0x00650064, 0x00a500a4}, {0x00e700e6, 0x00270026, 0x00670066, 0x00a700a6},
    {0x00090008, 0x00490048, 0x00890088, 0x00c900c8}, {0x000b000a, 0x004b004a, 0x008b008a, 0x00cb00ca},
    {0x000d000c, 0x004d004c, 0x008d008c, 0x00cd00cc}, {0x000f000e, 0x004f004e, 0x008f008e, 0x00cf00ce},
    {0x00310030, 0x00710070, 0x00b100b0, 0x00f100f0}, {0x00330032, 0x00730072, 0x00b300b2, 0x00f300f2},
    {0x00350034, 0x00750074, 0x00b500b4, 0x00f500f4}, {0x00370036, 0x00770076, 0x00b700b6, 0x00f700f6}};
/// The same, transposed.
inline constexpr std::uint32_t matrices_transposed[32][4] = {
    {0x00400018, 0x00800058, 0x00c00098, 0x000000d8}, {0x00900068, 0x00d000a8, 0x001000e8, 0x00500028},
    {0x00e000b8, 0x002000f8, 0x00600038, 0x00a00078}, {0x00300008, 0x00700048, 0x00b00088, 0x00f000c8},
    {0x00410019, 0x00810059, 0x00c10099, 0x000100d9}, {0x00910069, 0x00d100a9, 0x001100e9, 0x00510029},
    {0x00e100b9, 0x002100f9, 0x00610039, 0x00a10079}, {0x00310009, 0x00710049, 0x00b10089, 0x00f100c9},
    {0x0042001a, 0x0082005a, 0x00c2009a, 0x000200da}, {0x0092006a, 0x00d200aa, 0x001200ea, 0x0052002a},
    {0x00e200ba, 0x002200fa, 0x0062003a, 0x00a2007a}, {0x0032000a, 0x0072004a, 0x00b2008a, 0x00f200ca},
    {0x0043001b, 0x0083005b, 0x00c3009b, 0x000300db}, {0x0093006b, 0x00d300ab, 0x001300eb, 0x0053002b},
    {0x00e300bb, 0x002300fb, 0x0063003b, 0x00a3007b}, {0x0033000b, 0x0073004b, 0x00b3008b, 0x00f300cb},
    {0x0044001c, 0x0084005c, 0x00c4009c, 0x000400dc}, {0x0094006c, 0x00d400ac, 0x001400ec, 0x0054002c},
    {0x00e400bc, 0x002400fc, 0x0064003c, 0x00a4007c}, {0x0034000c, 0x0074004c, 0x00b4008c, 0x00f400cc},
    {0x0045001d, 0x0085005d, 0x00c5009d, 0x000500dd}, {0x0095006d, 0x00d500ad, 0x001500ed, 0x0055002d},
    {0x00e500bd, 0x002500fd, 0x0065003d, 0x00a5007d}, {0x0035000d, 0x0075004d, 0x00b5008d, 0x00f500cd},
    {0x0046001e, 0x0086005e, 0x00c6009e, 0x000600de}, {0x0096006e, 0x00d600ae, 0x001600ee, 0x0056002e},
    {0x00e600be, 0x002600fe, 0x0066003e, 0x00a6007e}, {0x0036000e, 0x0076004e, 0x00b6008e, 0x00f600ce},
    {0x0047001f, 0x0087005f, 0x00c7009f, 0x000700df}, {0x0097006f, 0x00d700af, 0x001700ef, 0x0057002f},
    {0x00e700bf, 0x002700ff, 0x0067003f, 0x00a7007f}, {0x0037000f, 0x0077004f, 0x00b7008f, 0x00f700cf}};

// round_pair, and the nearest bf16 by hand.
struct Rounding {
  std::uint32_t number;  ///< bits
  std::uint16_t rounded;
};
inline constexpr Rounding roundings[16] = {
    {0x3f800000, 0x3f80},                        // 1
    {0xbf800000, 0xbf80},                        // -1
    {0x3f808000, 0x3f80},                        // a tie: down to the even one
    {0x3f818000, 0x3f82},                        // a tie: up to the even one
    {0x3f808001, 0x3f81},                        // above a tie
    {0x3f817fff, 0x3f81},                        // below a tie
    {0x3fffffff, 0x4000},                        // into the next power of two
    {0x7f7fffff, 0x7f80},                        // the largest float: infinity
    {0xff7f7fff, 0xff7f},                        // the largest that is not
    {0x7f800000, 0x7f80},                        // infinity
    {0xff800000, 0xff80}, {0x80000000, 0x8000},  // -0
    {0x00000001, 0x0000},                        // the smallest float
    {0x00008000, 0x0000},                        // half of the smallest bf16: a tie
    {0x00018000, 0x0002}, {0x7fc00001, 0x7fff},  // not a number
};

}  // namespace tessera::test
