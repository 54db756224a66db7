// How a program ends where it cannot go on: in one sentence on standard error, and 1.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>

#include "runtime/error.hpp"
#include "runtime/labels.hpp"

namespace tessera::runtime {

/// For std::set_terminate: where memory runs out in a place that may not throw, in a library for instance, the program
/// still ends in a sentence.
[[noreturn]] inline void end_without_memory() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
  } catch (...) {
    std::abort();
  }
  std::fputs("the program cannot go on: there is not enough memory\n", stderr);
  std::_Exit(1);
}

/// Takes the numbers of standard input, output and error where the caller has closed them: the next file that is opened
/// would have one, and what is printed would be written into it. Printing fails as before, since these are for reading.
inline void hold_standard_files() {
  int number = 0;
  do number = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  while (number >= 0 && number <= STDERR_FILENO);
  if (number >= 0) ::close(number);
}

/// To begin with: what would otherwise end the program without a sentence does not.
inline void end_in_sentences() {
  hold_standard_files();
  std::set_terminate(end_without_memory);
  std::signal(SIGXFSZ, SIG_IGN);  // of a file that would grow past its limit
}

/// `code`. Throws an Error where the text did not arrive: a full disk behind a redirection is otherwise silent.
inline int finished(int code) {
  if (!std::cout.flush()) fail("cannot write to standard output");
  return code;
}

/// What `run` returns, or 1 after "NAME: SENTENCE" about what it threw. That needs memory, of which there may be none
/// left: what is said then needs none.
template <class Run>
int ending_in_a_sentence(const std::string& name, const Run& run) {
  end_in_sentences();
  try {
    try {
      return finished(run());
    } catch (const std::bad_alloc&) {
    } catch (const std::length_error&) {
    } catch (const std::exception&) {
      const std::string said = text(name, ": ", without_controls(sentence_of_error()), "\n");
      std::cerr << said << std::flush;
      return 1;
    }
  } catch (const std::exception&) {  // out of memory while saying something else
  }
  std::fprintf(stderr, "%s: there is not enough memory\n", name.c_str());
  return 1;
}

}  // namespace tessera::runtime
