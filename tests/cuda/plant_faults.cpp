// plant_faults DEVICE OUT RACES: writes a header with one copy of the headers of the folder DEVICE for each fault
// below, in a namespace of its own, and tables of them; and one with those faults that only ThreadSanitizer finds.
// Throws where the text has changed so that a fault has no place any more.
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
    {"a_row_past_the_end_is_stored", "step < rows) later", "step <= rows) later"},
    {"a_row_past_the_end_is_loaded", "whole || at < rows ? at : rows - 1", "at"},
    {"a_row_loaded_for_another", "whole || at < rows ? at : rows - 1", "at < 0 ? at : rows - 1"},
    {"a_full_tile_that_is_none", "first_row + tile_rows <= rows)", "first_row < rows)"},
    {"rows_that_are_left_out", "for (int i = 0; i < tile_rows / step; i += at_once)",
     "for (int i = at_once; i < tile_rows / step; i += at_once)"},
    {"a_row_stored_for_another", "later[there]()", "later[at_once - 1 - there]()"},
    {"lanes_that_part_before_they_multiply", "multiply_add(sums[i][2 * j], lefts[i], rights);",
     "const auto step = [&] { multiply_add(sums[i][2 * j], lefts[i], rights); };\n          lane % 2 ? step() : "
     "step();"},
    {"a_column_past_the_end_is_stored", "first_column + column < columns", "first_column + column <= columns"},
};
const Fault faults_in_attention[] = {
    {"no_wait_for_keys", "  copy_wait<1>();\n  barrier();", "  barrier();"},
    {"a_wait_that_leaves_the_keys", "  copy_wait<1>();\n  barrier();", "  copy_wait<2>();\n  barrier();"},
    {"no_wait_for_values", "      copy_wait<1>();\n", ""},
    {"a_wait_that_leaves_the_values", "      copy_wait<1>();\n", "      copy_wait<2>();\n"},
    {"no_group_of_values", "keys, value);\n  copy_commit();\n", "keys, value);\n"},
    {"no_wait_for_the_next_queries", "    copy_wait<0>();\n", ""},
    {"a_wait_that_leaves_the_next_queries", "copy_wait<0>", "copy_wait<1>"},
    {"no_group_where_there_are_no_next_queries", "    copy_commit();\n", "    if (next_row < rows) copy_commit();\n"},
    {"no_barrier_before_keys_are_read", "  barrier();  // keys", "  // keys"},
    {"no_barrier_before_values_are_read", "  barrier();  // values", "  // values"},
    {"no_next_queries", "if (next_row < rows) bring", "if (next_row < 0) bring"},
    {"queries_of_a_tile_too_far", "(queries, next_row,", "(queries, next_row + tile,"},
    {"a_tile_too_far", "next_row = first_row + blocks_x()", "next_row = first_row + (blocks_x() + 1)"},
    {"the_last_tile_is_left_out", "while (first_row < rows)", "while (first_row + tile < rows)"},
    {"a_tile_that_every_block_begins_with", "(block_x() * warps + (warp", "((warp"},
    {"one_tile_for_two_warps", "(warp + block_z()) % warps", "(warp + block_z()) / 2 % warps"},
    {"one_place_for_all_queries", "width + warp * tile * width;", "width;"},
    {"queries_where_values_are", "value_lines + most_keys * width + warp", "value_lines + warp"},
    {"a_query_past_the_end_is_brought", "next_row, rows, query", "next_row, rows + 1, query"},
    {"a_line_past_the_end_is_brought", "first + line < count ? 16", "first + line <= count ? 16"},
    {"keys_swizzled_where_read_only", "tile + swizzled<width>(line, place)", "tile + line * width + place"},
    {"wrong_fragment_of_queries", "me.second + me.in_matrix, depth + me.third",
     "me.third + me.in_matrix, depth + me.second"},
    {"wrong_fragment_of_keys", "j * 16 + me.third + me.in_matrix, depth + me.second",
     "j * 16 + me.second + me.in_matrix, depth + me.third"},
    {"wrong_half_of_the_keys", "of_keys + 2", "of_keys"},
    {"a_key_past_the_end_counts", "column < keys ? score", "column < most_keys ? score"},
    {"a_maximum_of_some_lanes", "larger(most[half], shuffle_xor(most[half], 2))", "most[half]"},
    {"a_sum_of_some_lanes", "    sums[half] += shuffle_xor(sums[half], 2);\n", ""},
    {"a_key_past_the_end_is_saved", "begin >= columns", "begin >= columns + 2"},
    {"a_row_past_the_end_is_stored", "if (at >= rows", "if (at > rows"},
    {"wrong_fragment_of_p", "rounded_pair(p[2 * j][2], p[2 * j][3])", "rounded_pair(p[2 * j + 1][0], p[2 * j + 1][1])"},
    {"halves_of_a_pair_exchanged", "rounded_pair(p[2 * j][0], p[2 * j][1])", "rounded_pair(p[2 * j][1], p[2 * j][0])"},
    {"neighbours_exchanged", "store(at, begin, one, other);\n", "store(at, begin, other, one);\n"},
    {"a_neighbour_past_the_end_is_saved", "begin + 1 < columns) store", "begin < columns) store"},
    {"values_not_transposed", "load_matrices_transposed", "load_matrices"},
    {"wrong_fragment_of_values", "j * 16 + me.second + me.in_matrix, k * 16 + me.third",
     "j * 16 + me.third + me.in_matrix, k * 16 + me.second"},
    {"a_row_past_the_end_is_kept", "lane % 4 == 0 && row < rows) keep", "lane % 4 == 0 && row <= rows) keep"},
    {"a_row_that_is_not_kept", "lane % 4 == 0 && row < rows) keep", "lane % 8 == 0 && row < rows) keep"},
    {"the_other_half_is_kept", "OfRow{most[half], sums[half]}", "OfRow{most[half], sums[0]}"},
    {"a_maximum_of_the_other_half_is_kept", "OfRow{most[half], sums[half]}", "OfRow{most[0], sums[half]}"},
};
/// In what stores a warp's sums.
const Fault faults_in_squares[] = {
    {"a_word_for_another", "lane & bit ? words[i] : words[i + bit], bit",
     "lane & bit ? words[i + bit] : words[i], bit"},
    {"words_exchanged_with_one_lane_alone", "words[i + bit], bit)", "words[i + bit], 1)"},
    {"a_word_of_another_lane", "words[i + bit] = lane & bit ? words[i + bit] : other", "words[i + bit] = other"},
    {"rows_eight_apart_exchanged", "row + lane % 4 / 2 * 8", "row + (lane % 4 < 2) * 8"},
    {"eights_exchanged", "column + lane % 2 * 8", "column + (lane + 1) % 2 * 8"},
    {"a_row_past_the_end_is_stored_by_eight", "if (its_row < rows && (", "if (("},
    {"an_eight_past_the_end", "its_column < columns", "its_column <= columns"},
    {"an_eight_that_is_left_out", "its_column < columns", "its_column + 7 < columns"},
    {"a_row_past_the_end_is_read", "row + 8 < rows ? row + 8 : rows - 1", "row + 8"},
    {"the_wrong_row_is_read", "row + 8 < rows ? row + 8 : rows - 1", "row"},
    {"a_two_for_another", "i < 4 ? left[i % 4] : right[i % 4]", "i < 4 ? left[i % 2] : right[i % 4]"},
};
const Fault faults_in_gradient[] = {
    {"no_wait_for_a_tile", "      copy_wait<0>();\n", ""},
    {"a_wait_for_a_tile_too_few", "copy_wait<0>", "copy_wait<2>"},
    {"no_wait_for_the_first_tile", "    copy_wait<1>();\n", ""},
    {"a_wait_that_leaves_the_first_tile", "copy_wait<1>", "copy_wait<2>"},
    {"no_barrier_before_the_first_tile_is_read", "    barrier();  // the first tile", "    // the first tile"},
    {"no_barrier_before_the_sums_of_warps_are_read", "    barrier();  // the sums", "    // the sums"},
    {"no_barrier_before_the_changes_are_read", "    barrier();  // the changes", "    // the changes"},
    {"the_next_tile_over_the_one_that_is_read", "place == 2 ? 0 : place + 1);\n      me", "place);\n      me"},
    {"always_the_same_place", "      place = place == 2 ? 0 : place + 1;\n", ""},
    {"a_tile_too_far", "bring_tile(first + 2 * most_queries", "bring_tile(first + 3 * most_queries"},
    {"queries_for_gradients", "gradients = queries + most_queries * width", "gradients = queries"},
    {"values_for_keys", "rights = key_lines", "rights = value_lines"},
    {"a_key_past_the_end_is_brought", "(value_lines, 0, keys, value)", "(value_lines, 0, keys + 1, value)"},
    {"a_row_past_the_end_is_brought", "first, rows, query,", "first, rows + 1, query,"},
    {"a_key_past_the_end_has_a_p", "at < keys && row < rows ? probability", "at <= keys && row < rows ? probability"},
    {"a_row_past_the_end_has_a_p", "at < keys && row < rows ? probability", "at < keys && row <= rows ? probability"},
    {"a_key_past_the_end_has_a_change", "whole || (at < keys && row < rows)", "whole || (at <= keys && row < rows)"},
    {"a_row_past_the_end_has_a_change", "whole || (at < keys && row < rows)", "whole || (at < keys && row <= rows)"},
    {"a_tile_that_is_not_whole", "first + tile <= rows && (me", "first < rows && (me"},
    {"a_row_past_the_end_is_stored", "first + line, rows, column", "first + line, rows + 1, column"},
    {"a_key_past_the_end_is_stored", "(store_key, me.warp * 16, keys,", "(store_key, me.warp * 16, keys + 1,"},
    {"wrong_fragment_of_values", "me.warp * 16 + me.second + me.in_matrix, me.third",
     "me.warp * 16 + me.third + me.in_matrix, me.second"},
    {"values_of_another_warp", "me.warp * 16 + me.second + me.in_matrix, me.third",
     "me.second + me.in_matrix, me.third"},
    {"wrong_fragment_of_gradients", "of_tile = swizzled<width>(me.third + me.in_matrix, me.second)",
     "of_tile = swizzled<width>(me.second + me.in_matrix, me.third)"},
    {"wrong_half_of_the_gradients", "left, right + 2);\n    }\n  }\n}", "left, right);\n    }\n  }\n}"},
    {"keys_eight_apart_exchanged", "half ? high : low) + shuffle", "half ? low : high) + shuffle"},
    {"a_sum_of_some_lanes", "shuffle_xor(mine & half ? low : high, half * 4)",
     "(half == 4 ? 0 : shuffle_xor(mine & half ? low : high, half * 4))"},
    {"a_sum_of_one_key", " + p[i / 2][i % 2 + 2] * dp[i / 2][i % 2 + 2]", ""},
    {"a_sum_of_some_warps", "w < warps; ++w", "w < warps - 1; ++w"},
    {"a_sum_that_goes_on", "real sum = 0,", "real sum = deltas[me.warp * 32 + me.lane],"},
    {"sums_in_another_order", "me.my_query * 4 + me.lane / 4]", "me.lane]"},
    {"sums_that_nobody_waits_for", "warp_barrier();  ", "  "},
    {"the_delta_of_another_row", "delta[j * 2 + i])", "delta[j * 2])"},
    {"changes_of_the_other_key", "of_changes[j / 2][j % 2 * 2 + half]", "of_changes[j / 2][half * 2 + j % 2]"},
    {"p_of_the_other_key", "p[2 * j + i / 2][i % 2 * 2], p", "p[2 * j + i % 2][i / 2 * 2], p"},
    {"changes_swizzled_where_read_only", "there = swizzled<most_queries>(me.my_key, me.my_query)",
     "there = me.my_key * most_queries + me.my_query"},
    {"changes_not_transposed", "load_matrices_transposed(left,", "load_matrices(left,"},
    {"wrong_fragment_of_changes", "me.third + me.in_matrix, line + me.second",
     "me.second + me.in_matrix, line + me.third"},
    {"keys_not_transposed", "load_matrices_transposed(right, rights", "load_matrices(right, rights"},
    {"wrong_fragment_of_keys", "me.second + me.in_matrix, column + me.third",
     "me.third + me.in_matrix, column + me.second"},
    {"a_square_twice", "square / across * 16, column", "0, column"},
    {"a_square_too_few", "if (square >= squares)", "if (square >= squares - 1)"},
    {"wrong_sum", "of_query[0], of_query[1], me", "of_query[1], of_query[0], me"},
    {"wrong_fragment_of_queries", "of_columns_again = swizzled<width>(me.second + me.in_matrix, begin + me.third)",
     "of_columns_again = swizzled<width>(me.third + me.in_matrix, begin + me.second)"},
    {"wrong_half_of_the_queries", "of_key[2 * k + 1], of_changes[j], right + 2",
     "of_key[2 * k + 1], of_changes[j], right"},
    {"changes_of_the_first_sixteen", "of_key[2 * k], of_changes[j]", "of_key[2 * k], of_changes[0]"},
};
/// In what sums over rows.
const Fault faults_in_reduce[] = {
    {"no_barrier_before_the_sums_are_added_up", "  barrier();  // the sums of all warps", "  // the sums of all warps"},
    {"sums_that_nobody_begins", "  for (int at = thread_x() % 32; at < count; at += 32) mine[at] = 0;\n", ""},
    {"sums_that_are_begun_in_part", "at < count; at += 32) mine", "at < count - 32; at += 32) mine"},
    {"one_warps_place_for_all", "shared_memory<real>() + thread_x() / 32 * count", "shared_memory<real>()"},
    {"places_that_meet", "thread_x() / 32 * count", "thread_x() / 32 * (count - 32)"},
    {"sums_of_some_warps", "++warp) all += sums[", "warp += 2) all += sums["},
    {"one_warps_sums_alone", "sums[warp * count + at]", "sums[at]"},
    {"a_sum_past_the_end_is_stored", "at < count; at += threads()) {\n    real all",
     "at <= count; at += threads()) {\n    real all"},
    {"sums_that_are_not_stored", "at < count; at += threads()) {\n    real all",
     "at < count; at += 2 * threads()) {\n    real all"},
    {"sums_that_go_on", "    real all = 0;\n    for (int warp = 0; warp < threads() / 32; ++warp) all += sums",
     "    real all = to[at];\n    for (int warp = 0; warp < threads() / 32; ++warp) all += sums"},
};
/// Where p is made again.
const Fault faults_in_again[] = {
    {"no_barrier_before_the_first_tile_is_read", "    barrier();  // the first tile", "    // the first tile"},
    {"no_barrier_before_the_sums_of_warps_are_read", "    barrier();  // the sums", "    // the sums"},
    {"no_barrier_before_the_changes_are_read", "    barrier();  // the changes", "    // the changes"},
    {"no_wait_for_a_tile", "      copy_wait<0>();\n", ""},
    {"the_next_tile_over_the_one_that_is_read", "place == 2 ? 0 : place + 1);\n      me", "place);\n      me"},
    {"scores_of_gradients", "(p, key_lines, mine, queries, of_tile)", "(p, key_lines, mine, gradients, of_tile)"},
    {"scores_of_values", "(p, key_lines, mine, queries, of_tile)", "(p, value_lines, mine, queries, of_tile)"},
    {"what_is_kept_of_the_row_before", "rows_of_head[row + 1]}", "rows_of_head[row]}"},
    {"what_is_kept_of_the_first_tile", "{rows_of_head[row],", "{rows_of_head[row - first],"},
    {"a_row_past_the_end_was_kept", "row < rows ? kept(row)", "row <= rows ? kept(row)"},
    {"rows_of_some_threads", "row < padded_rows)", "row < padded_rows - 32)"},
    {"rows_where_sums_are", "(deltas + block)", "(deltas)"},
    {"a_score_of_the_other_key", "me.my_key + part / 2 * 8, p[j][part]", "me.my_key, p[j][part]"},
    {"a_score_of_the_other_row", "probability(row + part % 2, me", "probability(row, me"},
    {"a_score_of_the_other_sum", "p[j][part], of_them", "p[j][part % 2], of_them"},
    {"a_warp_whose_keys_are_not_all", "(me.warp + 1) * 16 <= keys)", "me.warp * 16 <= keys)"},
    {"a_key_past_the_end_has_a_p_again", "i % 4 / 2 * 8 >= keys) p", "i % 4 / 2 * 8 > keys) p"},
};
const Fault faults_in_warpgroups[] = {
    {"no_fence_behind_the_gates", "    asynchronous_fence();\n", ""},
    {"no_barrier_behind_the_gates", "  barrier_of_gates<cluster>();  // the gates", "  // the gates"},
    {"no_bytes_expected", "gate_expect(full + place, step * static_cast<int>(sizeof(bf16)))",
     "gate_arrive<1>(full + place, 0)"},
    {"too_few_bytes_expected", "full + place, step * static_cast<int>(sizeof(bf16))", "full + place, step"},
    {"a_first_step_that_waits_for_another", "int parity = 1;", "int parity = 0;"},
    {"a_first_step_that_waits_for_none", "int parity = 0, turn", "int parity = 1, turn"},
    {"a_parity_that_stays",
     "give_back(place);\n        place = place + 1 == steps ? 0 : place + 1;\n        parity ^= place == 0;",
     "give_back(place);\n        place = place + 1 == steps ? 0 : place + 1;"},
    {"a_parity_that_stays_where_boxes_are_brought",
     "       right_fourth);\n        place = place + 1 == steps ? 0 : place + 1;\n        parity ^= place == 0;",
     "       right_fourth);\n        place = place + 1 == steps ? 0 : place + 1;"},
    {"no_wait_for_a_step", "gate_wait(full + place, parity);\n        const bf16", "const bf16"},
    {"no_wait_for_a_place", "gate_wait(empty + place, parity)", "(void)parity"},
    {"a_place_that_is_never_given_back", "gate_arrive<cluster>(empty + (behind == 0 ? steps : behind) - 1, lane);",
     "(void)(empty + behind);"},
    {"a_place_given_back_too_early", "(behind == 0 ? steps : behind) - 1", "behind"},
    {"a_place_given_back_by_one_warp", "(across + over - 1) * of_team", "1"},
    {"a_place_given_back_by_all_lanes", "of_mine >> lane & 1", "of_mine != 0"},
    {"a_place_given_back_that_was_not_used", "if (begin > from) give_back", "give_back"},
    {"a_place_given_back_to_one_block", "of_mine >> lane & 1", "(of_mine & 1) >> lane & 1"},
    {"a_place_given_back_by_one_block", "(across + over - 1) * of_team", "of_team"},
    {"a_share_for_nobody_else", "copy_box<sharing>", "copy_box<1>"},
    {"the_same_share_by_both", "full + place, down_at, of_my_columns", "full + place, 0, of_my_columns"},
    {"the_same_share_of_rows_by_both", "full + place, across_at, of_my_rows", "full + place, 0, of_my_rows"},
    {"rows_for_those_of_the_same_columns", "across_at, of_my_rows", "across_at, of_my_columns + 0 * of_my_rows"},
    {"columns_for_those_of_the_same_rows", "down_at, of_my_columns", "down_at, of_my_rows + 0 * of_my_columns"},
    {"columns_for_the_first_two", "- 1) << across_at * over,", "- 1),"},
    {"rows_for_the_first_two", "((across - 1) << over | 1) << down_at", "((across - 1) << over | 1)"},
    {"a_place_given_back_to_two_blocks", "of_mine >> lane & 1", "(of_mine & of_my_columns) >> lane & 1"},
    {"both_with_the_same_columns", "cluster_columns + across_at * tile_columns", "cluster_columns"},
    {"a_share_at_the_wrong_place", "tile + i * box + line * 64", "tile + i * box"},
    {"both_with_the_same_rows", "cluster_rows + down_at * tile_rows", "cluster_rows"},
    {"sums_that_may_be_written", "      multiplications_begin();\n", ""},
    {"no_group_of_multiplications", "      multiplications_commit();\n", ""},
    {"no_wait_for_multiplications", "      multiplications_wait<1>();", "      "},
    {"a_wait_for_a_step_too_few", "multiplications_wait<1>", "multiplications_wait<2>"},
    {"no_wait_for_the_last_step", "      multiplications_wait<0>();\n", ""},
    {"a_last_place_that_is_never_given_back", "if (from < to) give_back(place);\n", "\n"},
    {"a_last_barrier_that_does_not_release", "  cluster_barrier<cluster>();  // no block",
     "  barrier_of_gates<cluster>();  // no block"},
    {"a_block_that_ends_too_early", "  cluster_barrier<cluster>();  // no block", "  barrier();  // no block"},
    {"no_barrier_before_the_next_square", "        warp_barrier();  // of the square before",
     "        // of the square before"},
    {"no_barrier_before_a_square_is_stored", "        warp_barrier();  // the square", "        // the square"},
    {"the_first_square_alone", "          if (i != now) continue;\n", "          if (i != 0) continue;\n"},
    {"squares_of_other_warps", "squares + warp * square_rows * square_columns", "squares"},
    {"eights_at_the_place_of_others", "(mine ^ (line % 4 * 8))", "mine"},
    {"a_tile_too_few", "at < tiles; at += teams * together", "at < tiles - 1; at += teams * together"},
    {"no_wait_for_a_turn", "        gate_wait(turns + team, turn);\n", ""},
    {"a_turn_for_the_same_team", "turns + (1 - team), 0", "turns + team, 0"},
    {"a_turn_given_by_one_warp", "if (teams > 1 && lane == 0)", "if (teams > 1 && warp % of_team == 0 && lane == 0)"},
    {"a_turn_that_stays", "        turn ^= 1;\n", ""},
    {"a_turn_for_both_at_first", "turn = team == 0;", "turn = 1;"},
    {"steps_of_the_others_that_are_not_passed_over", "      pass_over();\n", ""},
    {"a_parity_of_the_others_that_stays", "      parity ^= there / steps % 2;\n", ""},
    {"a_first_tile_of_the_other_team", "    if (team > 0) pass_over();\n", ""},
    {"not_swizzled", "swizzled_128 = 1;", "swizzled_128 = 0;"},
    {"swizzled_otherwise", "swizzled_128 = 1;", "swizzled_128 = 2;"},
    {"wrong_stride", "std::uint64_t{1024 >> 4}", "std::uint64_t{512 >> 4}"},
    {"wrong_leading", "box * static_cast<int>(sizeof(bf16))", "128"},
    {"wrong_depth_of_deep_lines", "point * 64 + depth", "point * 64 + depth * 2"},
    {"wrong_depth_of_lines_across", "box + depth * 64", "box + depth"},
    {"lines_taken_for_deep", "!left_deep, !right_deep>", "!left_deep, false>"},
    {"lines_taken_for_across", "!left_deep, !right_deep>", "true, !right_deep>"},
    {"wrong_rows", "my_row + part * 64, depth", "part * 64, depth"},
    {"one_box_too_few", "i < points * warpgroup_depth / box;", "i < 1;"},
    {"a_box_of_other_depths", "(deep ? first : depth) + line", "(deep ? first : depth + 1) + line"},
    {"a_box_of_another_group", "begin, left_third, left_fourth", "begin, left_fourth, left_third"},
    {"a_step_too_few", "begin < to; begin += warpgroup_depth) {\n        gate_wait(empty",
     "begin + warpgroup_depth < to; begin += warpgroup_depth) {\n        gate_wait(empty"},
    {"wrong_sum", "lane / 4 + j / 2 % 2 * 8", "lane / 4 + j % 2 * 8"},
    {"wrong_column_of_a_sum", "(row % 4 * 8)) + lane % 4 * 2", "(row % 4 * 8)) + lane / 4 % 4 * 2"},
    {"rows_of_one_warp", "warp % 4 * 16,\n", "0 * warp,\n"},
    {"a_column_past_the_end_is_stored", "row < rows && column < columns)", "row < rows && column <= columns)"},
};
const Fault faults_in_sums_of_rows[] = {
    {"no_wait_for_what_is_summed", "        gate_wait(full + place, parity);\n        if (next", "        if (next"},
    {"a_parity_that_stays", "parity ^= place == 0;\n      }\n      of_rows", "parity ^= 0;\n      }\n      of_rows"},
    {"steps_of_all", "next == share", "next >= 0"},
    {"steps_of_another_share", "next == share", "next != share"},
    {"a_share_too_many", "next + 1 == shares ?", "next == shares ?"},
    {"the_last_steps_are_not_summed",
     "begin < to; begin += warpgroup_depth) {\n        gate_wait(full + place, parity);\n "
     "       if (next",
     "begin + warpgroup_depth < to; begin += warpgroup_depth) {\n        gate_wait(full + place, "
     "parity);\n        if (next"},
    {"the_place_of_the_next_step", "of_rows.add(factors + place * step, lane)",
     "of_rows.add(factors + (place + 1) % steps * step, lane)"},
    {"a_place_that_is_kept", "        if (lane == 0) gate_arrive<1>(empty + place, 0);\n", ""},
    {"a_place_given_back_by_those_who_multiply_alone", "of_team + (shares > 0)", "of_team"},
    {"not_swizzled_as_it_lies", "(row % 64 / 8 ^ line) * 8", "row % 64 / 8 * 8"},
    {"sums_of_half_the_depths", "depth < warpgroup_depth; depth += 8", "depth < warpgroup_depth / 2; depth += 8"},
    {"sums_that_go_on_with_the_next_tile", "      of_rows.begin();\n", ""},
    {"a_row_in_the_place_of_its_neighbour", "sums[i + 1] += two.second", "sums[i + 1] += two.first"},
    {"a_sum_of_the_row_above", "lane * of_lane + i, sums[i]", "lane * of_lane + i, sums[i / 2 * 2]"},
    {"a_sum_of_a_row_past_the_end", "share < shares && first_row + row < rows)",
     "share < shares && first_row + row <= rows)"},
    {"a_share_that_is_not_stored", "share < shares && first_row + row < rows)", "share < 1 && first_row + row < rows)"},
};
/// Right numbers in every order of threads: what is written twice is the same, or a warp runs as one here.
const struct {
  std::string header, kernel;
  Fault fault;
} races[] = {
    {"reduce.h",
     "reduce_kernel.h",
     {"sums_over_each_other", "  barrier();  // the next reduction", "  // the next reduction"}},
    {"reduce.h",
     "reduce_kernel.h",
     {"sums_of_lanes_over_each_other", "all += of_thread[at];\n  barrier();\n", "all += of_thread[at];\n"}},
    {"product.h",
     "product_kernel.h",
     {"steps_over_each_other", "    barrier();  // the next tiles", "    // the next tiles"}},
    {"tensor_product.h",
     "tensor_kernel.h",
     {"no_barrier_before_a_step_of_one_warp", "    barrier();  // all threads", "    // all threads"}},
    {"tensor_product.h",
     "tensor_kernel.h",
     {"no_barrier_before_the_sums_of_one_warp", "  barrier();  // the sums", "  // the sums"}},
    {"tensor_product.h",
     "tensor_kernel.h",
     {"a_last_tile_moved_back", "first_row = block_x() * tile_rows,",
      "first_row = (block_x() + 1) * tile_rows <= rows ? block_x() * tile_rows : rows - tile_rows,"}},
    {"attention.h",
     "attention_kernel.h",
     {"no_barrier_before_the_keys_of_one_warp", "  barrier();  // keys", "  // keys"}},
    {"attention.h",
     "attention_kernel.h",
     {"no_barrier_before_the_values_of_one_warp", "  barrier();  // values", "  // values"}},
    {"attention.h",
     "attention_kernel.h",
     {"next_queries_over_those_that_are_read", "    warp_barrier();  // nobody", "    // nobody"}},
    {"attention.h",
     "attention_kernel.h",
     {"no_barrier_before_the_next_queries", "    warp_barrier();  // the next", "    // the next"}},
    {"attention.h",
     "attention_kernel.h",
     {"tiles_of_the_blocks_beside", "first_row + blocks_x() * warps", "first_row + warps"}},
    {"attention_gradient.h",
     "attention_gradient_kernel.h",
     {"no_barrier_before_the_changes_of_one_warp", "    barrier();  // the changes", "    // the changes"}},
    {"warpgroup_product.h",
     "warpgroup_kernel.h",
     {"a_step_over_rows_that_are_read", "        warp_barrier();  // all lanes", "        // all lanes"}},
    {"warpgroup_product.h",
     "warpgroup_kernel.h",
     {"a_square_over_one_that_a_warp_reads", "        warp_barrier();  // of the square", "        // of the square"}},
    {"warpgroup_product.h",
     "warpgroup_kernel.h",
     {"no_barrier_before_a_square_of_one_warp", "        warp_barrier();  // the square", "        // the square"}},
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

std::string text_of(const std::string& path) {
  std::stringstream read;
  read << std::ifstream(path).rdbuf();
  return read.str();
}
void write(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

int run(const std::string& device, const std::string& to, const std::string& races_to) {
  const std::string product = device + "/tensor_product.h", attention = device + "/attention.h",
                    gradient = device + "/attention_gradient.h", warpgroups = device + "/warpgroup_product.h";
  std::string text = planted(text_of(product), unswizzled), table, attentions, squares, gradients, agains,
              of_warpgroups, of_rows, reduces;
  for (const Fault& fault : faults_in_reduce) {
    const Fault named{"reduce_with_" + fault.name, fault.from, fault.to};
    text += planted(text_of(device + "/reduce.h"), named, "reduce_kernel.h");
    reduces += "    {\"" + fault.name + "\", &" + named.name + "::sum_rows},\n";
  }
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
  for (const Fault& fault : faults_in_squares) {
    const Fault named{"squares_with_" + fault.name, fault.from, fault.to};
    text += planted(text_of(attention), named, "attention_kernel.h");
    squares += "    {\"" + fault.name + "\", &" + named.name + "::store_a_square},\n";
  }
  for (const Fault& fault : faults_in_gradient) {
    const Fault named{"gradient_with_" + fault.name, fault.from, fault.to};
    text += planted(text_of(gradient), named, "attention_gradient_kernel.h");
    gradients += "    {\"" + fault.name + "\", &" + named.name + "::attention_gradient_of_a_head<48, 32>},\n";
  }
  for (const Fault& fault : faults_in_again) {
    const Fault named{"again_with_" + fault.name, fault.from, fault.to};
    text += planted(text_of(gradient), named, "attention_gradient_kernel.h");
    agains += "    {\"" + fault.name + "\", &" + named.name + "::attention_again_of_a_head<80, 32>},\n";
  }
  for (const Fault& fault : faults_in_warpgroups) {
    const Fault named{"warpgroups_with_" + fault.name, fault.from, fault.to};
    text += planted(text_of(warpgroups), named, "warpgroup_kernel.h");
    of_warpgroups +=
        "    {\"" + fault.name + "\", &" + named.name + "::by_warpgroups<128, 128, 2, 2, 4, 4, true, false>},\n";
  }
  for (const Fault& fault : faults_in_sums_of_rows) {
    const Fault named{"sums_of_rows_with_" + fault.name, fault.from, fault.to};
    text += planted(text_of(warpgroups), named, "warpgroup_kernel.h");
    of_rows +=
        "    {\"" + fault.name + "\", &" + named.name + "::by_warpgroups_with_sums<64, 128, 1, 3, 2, false, 2>},\n";
  }
  write(to,
        text +
            "using Kernel = void(const bf16*, const bf16*, float*, int, int, int);\n"
            "constexpr struct {\n  const char* name;\n  Kernel *eights, *numbers;\n} planted[] = {\n" +
            table +
            "};\nconstexpr struct {\n  const char* name;\n  decltype(HeadAttention::kernel) kernel;\n} "
            "planted_in_attention[] = {\n" +
            attentions +
            "};\nconstexpr struct {\n  const char* name;\n  decltype(&store_a_square) kernel;\n} "
            "planted_in_squares[] = {\n" +
            squares +
            "};\nconstexpr struct {\n  const char* name;\n  decltype(HeadGradient::kernel) kernel;\n} "
            "planted_in_gradient[] = {\n" +
            gradients +
            "};\nconstexpr struct {\n  const char* name;\n  decltype(HeadAgain::kernel) kernel;\n} "
            "planted_in_again[] = {\n" +
            agains +
            "};\nconstexpr struct {\n  const char* name;\n  decltype(WarpgroupProduct::kernel) kernel;\n} "
            "planted_in_warpgroups[] = {\n" +
            of_warpgroups +
            "};\nconstexpr struct {\n  const char* name;\n  decltype(SummingProduct::kernel) kernel;\n} "
            "planted_in_sums_of_rows[] = {\n" +
            of_rows +
            "};\nconstexpr struct {\n  const char* name;\n  decltype(&sum_rows) kernel;\n} planted_in_reduce[] = {\n" +
            reduces + "};\n");
  text.clear();
  for (const auto& [header, kernel, fault] : races) text += planted(text_of(device + "/" + header), fault, kernel);
  write(races_to, text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 4) return run(argv[1], argv[2], argv[3]);
    std::cerr << "usage: plant_faults DEVICE OUT RACES\n";
  } catch (const std::exception& error) {
    std::cerr << "plant_faults: " << error.what() << "\n";
  }
  return 1;
}
