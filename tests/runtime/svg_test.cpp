#include "runtime/svg.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera::runtime {
namespace {

TEST(Svg, LinesAreAsWideAsTheirCharacters) {
  EXPECT_EQ(ems(""), 0);
  EXPECT_EQ(ems("W"), 1);
  EXPECT_EQ(ems("語W"), ems("W語"));
  EXPECT_GT(ems("語語"), 2);
  EXPECT_LT(ems("illi"), ems("noon"));
  EXPECT_LT(ems("noon"), ems("NOON"));
}

TEST(Svg, ALineThatIsTooWideLosesItsEndOrItsBeginning) {
  EXPECT_EQ(beginning("ship", 3), "ship");
  EXPECT_EQ(ending("ship", 3), "ship");
  EXPECT_EQ(beginning("WWWWW", 4), "WWW…");
  EXPECT_EQ(ending("WWMWW", 4), "…MWW");
  EXPECT_EQ(beginning("語語語語語", 4.4), "語語語…");
  EXPECT_EQ(ending("語語語語語", 4.4), "…語語語");
  for (const std::string line : {"folder-of-pictures/120.pgm", "4RwnmKmM/120.pgm", "ÄÖÜäöüß", "wwwwwwww"})
    for (double most = 1; most < 12; most += 0.25)
      for (const std::string& shown : {beginning(line, most), ending(line, most)}) EXPECT_LE(ems(shown), most) << shown;
  // Where nothing has room, not even the ellipsis, it stands all the same.
  EXPECT_EQ(beginning("WW", 0.5), "…");
  EXPECT_EQ(ending("WW", 0.5), "…");
}

}  // namespace
}  // namespace tessera::runtime
