// The generator of every model that a test declares.
#include "tests/declared/models.hpp"

int main(int argc, char** argv) {
  return tessera::codegen::generator_main(tessera::test::declared_models(), argc, argv);
}
