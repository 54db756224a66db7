// plant_faults TENSOR_PRODUCT OUT: writes a header with one copy of device/tensor_product.h for each fault below, in a
// namespace of its own, and a table of them. Throws where the text has changed so that a fault has no place any more.
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace {

struct Fault {
  std::string name, from, to;
};

const Fault faults[] = {
    {"no_barrier_before_the_first_step", "  of_right.round_to(factors + right_at);\n  barrier();\n",
     "  of_right.round_to(factors + right_at);\n"},
    {"no_barrier_between_steps", "    }\n    barrier();\n  }\n", "    }\n  }\n"},
    {"no_barrier_before_the_sums_are_stored", "  barrier();\n  const int column", "  const int column"},
    {"the_next_step_over_the_one_that_is_read", "    now = 1 - now;\n", ""},
    {"wrong_left_fragment", "my_row + i * 16 + second, depth + third", "my_row + i * 16 + third, depth + second"},
    {"wrong_right_fragment", "my_column + j * 16 + third, depth + second",
     "my_column + j * 16 + second, depth + third"},
    {"wrong_half_of_the_fragments", "rights + 2", "rights"},
    {"wrong_sum", "lane / 4 + part / 2 * 8, column", "lane / 4 + part % 2 * 8, column"},
    {"swizzled_where_read_only", "tile + swizzled<width>(line(pair), place(pair))",
     "tile + line(pair) * width + place(pair)"},
    {"two_numbers_at_one_place", "line * width + eight * 8", "line * width + eight / 2 * 16"},
    {"factors_exchanged", "load_matrices(fragments, tile + swizzled<width>(point + in_matrix, depth))",
     "load_matrices_transposed(fragments, tile + swizzled<width>(point + in_matrix, depth))"},
    {"a_row_past_the_end_is_read", "point < count", "point <= count"},
    {"a_depth_past_the_end_is_read", "depth < to ?", "depth <= to ?"},
    {"a_row_past_the_end_is_stored", "row < left_over", "row <= left_over"},
    {"a_column_past_the_end_is_stored", "first_column + column >= columns", "first_column + column > columns"},
};
/// Right numbers, but eight lines' numbers in the same banks.
const Fault unswizzled{"not_swizzled", "line / lines % (eights < 8 ? eights : 8)", "line / lines % 1"};

std::string planted(const std::string& text, const Fault& fault) {
  const std::size_t at = text.find(fault.from);
  if (at == std::string::npos || text.find(fault.from, at + 1) != std::string::npos)
    throw std::runtime_error("no place, or more than one, for the fault " + fault.name);
  return "namespace " + fault.name + " {\n" + std::string(text).replace(at, fault.from.size(), fault.to) +
         "#include \"tests/cuda/tensor_kernel.h\"\n}  // namespace " + fault.name + "\n";
}

int run(const char* from, const char* to) {
  std::stringstream read;
  read << std::ifstream(from).rdbuf();
  std::string text = planted(read.str(), unswizzled), table;
  for (const Fault& fault : faults) {
    text += planted(read.str(), fault);
    table += "    {\"" + fault.name + "\", &" + fault.name + "::on_tensor_cores<64, 32, 2, 2, true, false>},\n";
  }
  std::ofstream out(to, std::ios::binary);
  out << text
      << "constexpr struct {\n  const char* name;\n  void (*kernel)(const float*, const float*, float*, int, int, "
         "int);\n} planted[] = {\n"
      << table << "};\n";
  out.close();
  if (!out) throw std::runtime_error(std::string("cannot write ") + to);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3) return run(argv[1], argv[2]);
    std::cerr << "usage: plant_faults TENSOR_PRODUCT OUT\n";
  } catch (const std::exception& error) {
    std::cerr << "plant_faults: " << error.what() << "\n";
  }
  return 1;
}
