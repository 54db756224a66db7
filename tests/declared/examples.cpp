// The worked examples, made into models by trace_example.
#include "tests/cuda/example_models.hpp"
#include "tests/declared/models.hpp"

#define TESSERA_EXAMPLE(...) {#__VA_ARGS__, &tessera::test::trace_example<__VA_ARGS__>}

tessera::test::DeclaredModels tessera::test::example_models() {
  return {
      TESSERA_EXAMPLE(tessera::models::SelfAttention2d<{}>), TESSERA_EXAMPLE(tessera::test::ToySelfAttention),
      TESSERA_EXAMPLE(tessera::test::WideSelfAttention),     TESSERA_EXAMPLE(tessera::models::SentenceAttention),
      TESSERA_EXAMPLE(tessera::models::ScalarGraph),
  };
}
