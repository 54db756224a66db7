// Which functions stand in an emitted file once.
#include "codegen/emit/function_table.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tessera::codegen {
namespace {

using tree::binary;
using tree::call;
using tree::index;
using tree::integer;
using tree::name;

/// to[at] = from[at] + bias[at] for the `steps` elements of an array, by way of a lambda.
tree::Function function(const std::string& own, const std::string& from, const std::string& to,
                        const std::string& at = "at", int steps = 4) {
  tree::Function f;
  f.comment = {own + " of " + from};
  f.name = own;
  f.parameters = {{"const real*", from}, {"const real*", "bias"}, {"real*", to}};
  f.body = {tree::comment("of " + from), tree::declare("real", "kept[3]", nullptr),
            tree::lambda("store", {{"int", at}},
                         {tree::evaluate(binary("=", index(name(to), name(at)),
                                                index(name(from), name(at)) + index(name("bias"), name(at))))}),
            tree::loop("int", "step", integer(0), binary("<", name("step"), integer(steps)), 1,
                       {tree::assign("kept[0]", index(name(from), name("step"))),
                        tree::evaluate(call("store", {name("step")}))})};
  return f;
}

TEST(FunctionTable, NamesDoNotMatter) {
  const std::string text = text_up_to_names(function("heads_0_forward", "q", "out"));
  EXPECT_EQ(text, text_up_to_names(function("heads_0_forward", "a_much_longer_name_of_a_tensor", "b", "element")));
  EXPECT_EQ(text, text_up_to_names(function("heads_11_forward", "q", "out")));
  EXPECT_NE(text, text_up_to_names(function("heads_forward", "q", "out")));
  EXPECT_NE(text, text_up_to_names(function("heads_0_backward", "q", "out")));
  EXPECT_NE(text, text_up_to_names(function("heads1_0_forward", "q", "out")));
}

TEST(FunctionTable, WhereTheyAreDeclaredDoesNotMatter) {
  FunctionTable table(FunctionTable::Share::of_a_list);
  tree::Function first = function("f", "q", "out"), second = function("g", "q", "out");
  first.declared = "Model, model.hpp: f(x)";
  second.comment = first.comment;
  second.declared = "Model, model.hpp: g(x)";
  EXPECT_EQ(table.place(first, ""), "f");
  EXPECT_EQ(table.place(second, ""), "f");
  EXPECT_EQ(table.print().find("// Model, model.hpp: f(x)\n// f of q\n// for 2 kernels"), 1U) << table.print();
}

TEST(FunctionTable, AllElseDoes) {
  const tree::Function f = function("f", "q", "out");
  const std::string text = text_up_to_names(f);
  EXPECT_NE(text, text_up_to_names(function("f", "q", "out", "at", 5)));
  std::set<std::string> others{text};
  const auto other = [&](auto edit) {
    tree::Function g = f;
    edit(g);
    EXPECT_TRUE(others.insert(text_up_to_names(g)).second) << tree::print(g);
  };
  other([](tree::Function& g) { g.parameters[0].type = "const bf16*"; });
  other([](tree::Function& g) { g.returns = "void __launch_bounds__(128, 2)"; });
  other([](tree::Function& g) { std::swap(g.parameters[0], g.parameters[1]); });
  other([](tree::Function& g) { g.body[1].name = "kept[4]"; });
  other([](tree::Function& g) { g.body[3].body[0].name = "kept[1]"; });
  other([](tree::Function& g) { g.body[3].body[0].value = index(name("bias"), name("step")); });
  other([](tree::Function& g) { g.body[3].body[1].value = call("keep", {name("step")}); });
  other([](tree::Function& g) { g.body[3].type = "std::int64_t"; });
  other([](tree::Function& g) { g.body[3].step = 2; });
}

TEST(FunctionTable, TextThatRepeatsUpToNamesStandsOnce) {
  FunctionTable all(FunctionTable::Share::all), of_a_list(FunctionTable::Share::of_a_list);
  for (FunctionTable* table : {&all, &of_a_list}) {
    EXPECT_EQ(table->place(function("heads_0_forward", "q", "out"), "_train"), "heads_0_forward");
    EXPECT_EQ(table->place(function("heads_1_forward", "k", "to"), "_train"), "heads_0_forward");
    // Another text under its name.
    EXPECT_EQ(table->place(function("heads_0_forward", "q", "out", "at", 5), "_train"), "heads_0_forward_train");
    EXPECT_EQ(table->place(function("heads_0_forward", "q", "out", "at", 6), "_train"), "heads_0_forward_2");
  }
  EXPECT_EQ(all.place(function("fc1", "x", "y"), ""), "heads_0_forward");
  EXPECT_EQ(of_a_list.place(function("fc1", "x", "y"), ""), "fc1");
  EXPECT_NE(all.print().find("// heads_0_forward of q\n// for 3 kernels of the plan, of which this is the first\n"),
            std::string::npos)
      << all.print();
  EXPECT_EQ(all.names(), (std::set<std::string>{"heads_0_forward", "heads_0_forward_train", "heads_0_forward_2"}));
}

}  // namespace
}  // namespace tessera::codegen
