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
    {"no_wait", "    copy_wait<tensor_steps - 2>();\n", ""},
    {"waits_for_a_step_too_few", "copy_wait<tensor_steps - 2>", "copy_wait<tensor_steps - 1>"},
    {"no_groups", "    copy_commit();", "    "},
    {"no_group_where_there_is_no_step", "    copy_commit();", "    if (begin < to) copy_commit();"},
    {"no_barrier_before_a_step_is_multiplied", "    barrier();  // all threads", "    // all threads"},
    {"no_barrier_before_the_sums", "  barrier();  // the sums", "  // the sums"},
    {"no_barrier_before_the_sums_are_stored", "  barrier();\n  const int column", "  const int column"},
    {"the_next_step_over_the_one_that_is_read", "bring((now + tensor_steps - 1) % tensor_steps", "bring(now"},
    {"a_step_too_far", "begin + (tensor_steps - 1) * tensor_depth", "begin + tensor_steps * tensor_depth"},
    {"wrong_left_fragment", "my_row + i * 16 + second, depth + third", "my_row + i * 16 + third, depth + second"},
    {"wrong_right_fragment", "my_column + j * 16 + third, depth + second",
     "my_column + j * 16 + second, depth + third"},
    {"wrong_half_of_the_fragments", "rights + 2", "rights"},
    {"wrong_sum", "lane / 4 + part / 2 * 8, column", "lane / 4 + part % 2 * 8, column"},
    {"swizzled_where_read_only", "tile + swizzled<width>(line, place)", "tile + line * width + place"},
    {"swizzled_by_the_wrong_line", "swizzled<width>(point + in_matrix, depth)",
     "swizzled<width>(point, depth) + in_matrix * width"},
    {"two_numbers_at_one_place", "line * width + eight * 8", "line * width + eight / 2 * 16"},
    {"factors_exchanged", "load_matrices(fragments, tile + swizzled<width>(point + in_matrix, depth))",
     "load_matrices_transposed(fragments, tile + swizzled<width>(point + in_matrix, depth))"},
    {"a_row_past_the_end_is_read", "point < count && depth < to;", "depth < to;"},
    {"a_depth_past_the_end_is_read", "point < count && depth < to;", "point < count;"},
    {"an_eight_past_the_end_is_read", "left < 8 ? 2 * left : 16", "left > 0 ? 16 : 0"},
    {"an_eight_that_ends_too_early", "left < 8 ? 2 * left : 16", "left < 8 ? 0 : 16"},
    {"a_second_number_past_the_end_is_read", "(deep ? depth + 1 < to : point + 1 < count)", "true"},
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
    const std::string kernel = ", &" + fault.name + "::on_tensor_cores<64, 32, 2, 2, true, ";
    table += "    {\"" + fault.name + "\"" + kernel + "true, false, true>" + kernel + "false, false, false>},\n";
  }
  std::ofstream out(to, std::ios::binary);
  out << text
      << "using Kernel = void(const bf16*, const bf16*, float*, int, int, int);\n"
         "constexpr struct {\n  const char* name;\n  Kernel *eights, *numbers;\n} planted[] = {\n"
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
