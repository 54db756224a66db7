// What a test expects of a refusal.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/error.hpp"

namespace tessera::test {

/// The sentence of the runtime::Error that is thrown; "nothing was refused" where none is.
inline std::string refusal(const std::function<void()>& does) {
  try {
    does();
  } catch (const runtime::Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

/// One line of less than 500 letters that has `what` in it.
inline void expect_a_sentence(const std::string& sentence, const std::string& what) {
  EXPECT_NE(sentence.find(what), std::string::npos) << sentence;
  EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  EXPECT_LT(sentence.size(), 500u) << sentence;
}

}  // namespace tessera::test
