// plant_faults TENSOR_PRODUCT ATTENTION OUT: writes a header with one copy of device/tensor_product.h or
// device/attention.h for each fault below, in a namespace of its own, and tables of them. Throws where the text has
// changed so that a fault has no place any more.
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
const Fault faults_in_attention[] = {
    {"no_wait_for_keys", "  copy_wait<1>();\n", ""},
    {"no_wait_for_values", "  copy_wait<0>();\n", ""},
    {"a_wait_that_leaves_the_values", "copy_wait<0>", "copy_wait<1>"},
    {"no_barrier_before_keys_are_read", "  barrier();  // queries", "  // queries"},
    {"no_barrier_before_values_are_read", "  barrier();  // values", "  // values"},
    {"a_line_past_the_end_is_brought", "first + line < count ? 16", "first + line <= count ? 16"},
    {"keys_swizzled_where_read_only", "tile + swizzled<width>(line, place)", "tile + line * width + place"},
    {"wrong_fragment_of_queries", "warp * 16 + second + in_matrix, depth + third",
     "warp * 16 + third + in_matrix, depth + second"},
    {"wrong_fragment_of_keys", "j * 16 + third + in_matrix, depth + second",
     "j * 16 + second + in_matrix, depth + third"},
    {"wrong_half_of_the_keys", "of_keys + 2", "of_keys"},
    {"a_key_past_the_end_counts", "column < keys ? score", "column < most_keys ? score"},
    {"a_maximum_of_some_lanes", "larger(most[half], shuffle_xor(most[half], 2))", "most[half]"},
    {"a_sum_of_some_lanes", "    sums[half] += shuffle_xor(sums[half], 2);\n", ""},
    {"a_key_past_the_end_is_saved", "column < keys && row < rows", "column <= keys && row < rows"},
    {"a_row_past_the_end_is_saved", "column < keys && row < rows", "column < keys && row <= rows"},
    {"wrong_fragment_of_p", "pair_of(p[2 * j][2], p[2 * j][3])", "pair_of(p[2 * j + 1][0], p[2 * j + 1][1])"},
    {"halves_of_a_pair_exchanged", "rounded(first).bits | std::uint32_t{rounded(second).bits} << 16",
     "rounded(second).bits | std::uint32_t{rounded(first).bits} << 16"},
    {"values_not_transposed", "load_matrices_transposed", "load_matrices"},
    {"wrong_fragment_of_values", "j * 16 + second + in_matrix, k * 16 + third",
     "j * 16 + third + in_matrix, k * 16 + second"},
    {"a_row_past_the_end_is_stored", "if (row < rows) store", "if (row <= rows) store"},
};
/// Right numbers, but eight lines' numbers in the same banks.
const Fault unswizzled{"not_swizzled", "line / lines % (eights < 8 ? eights : 8)", "line / lines % 1"};

std::string planted(const std::string& text, const Fault& fault, const std::string& kernel = "tensor_kernel.h") {
  const std::size_t at = text.find(fault.from);
  if (at == std::string::npos || text.find(fault.from, at + 1) != std::string::npos)
    throw std::runtime_error("no place, or more than one, for the fault " + fault.name);
  return "namespace " + fault.name + " {\n" + std::string(text).replace(at, fault.from.size(), fault.to) +
         "#include \"tests/cuda/" + kernel + "\"\n}  // namespace " + fault.name + "\n";
}

std::string text_of(const char* path) {
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  return read.str();
}

int run(const char* product, const char* attention, const char* to) {
  std::string text = planted(text_of(product), unswizzled), table, attentions;
  for (const Fault& fault : faults) {
    text += planted(text_of(product), fault);
    const std::string kernel = ", &" + fault.name + "::on_tensor_cores<64, 32, 2, 2, true, ";
    table += "    {\"" + fault.name + "\"" + kernel + "true, false, true>" + kernel + "false, false, false>},\n";
  }
  for (const Fault& fault : faults_in_attention) {
    const Fault named{"attention_with_" + fault.name, fault.from, fault.to};
    text += planted(text_of(attention), named, "attention_kernel.h");
    attentions += "    {\"" + fault.name + "\", &" + named.name + "::attention_of_a_head<4, 48, 32>},\n";
  }
  std::ofstream out(to, std::ios::binary);
  out << text
      << "using Kernel = void(const bf16*, const bf16*, float*, int, int, int);\n"
         "constexpr struct {\n  const char* name;\n  Kernel *eights, *numbers;\n} planted[] = {\n"
      << table
      << "};\nconstexpr struct {\n  const char* name;\n  decltype(HeadAttention::kernel) kernel;\n} "
         "planted_in_attention[] = {\n"
      << attentions << "};\n";
  out.close();
  if (!out) throw std::runtime_error(std::string("cannot write ") + to);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 4) return run(argv[1], argv[2], argv[3]);
    std::cerr << "usage: plant_faults TENSOR_PRODUCT ATTENTION OUT\n";
  } catch (const std::exception& error) {
    std::cerr << "plant_faults: " << error.what() << "\n";
  }
  return 1;
}
