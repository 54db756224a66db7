#include "codegen/emit/isa_choice.hpp"

#include <fmt/format.h>

#include <range/v3/algorithm/contains.hpp>
#include <string_view>

#include "codegen/emit/tree.hpp"

namespace tessera::codegen {
namespace {

/// What CPUID, and the system for AMX, has to say before a program uses this instruction set.
std::string cpu_test(const Isa& isa) {
  std::vector<std::string> tests;
  for (const std::string_view feature : isa.cpu_features)
    tests.push_back(fmt::format("__builtin_cpu_supports(\"{}\")", feature));
  if (isa.matrix_unit == MatrixUnit::amx) tests.emplace_back("may_use_tiles()");
  std::string all;
  for (std::size_t i = 0; i < tests.size(); ++i)
    all += (i == 0 ? "" : i % 2 ? " && " : " &&\n             ") + tests[i];
  return all;
}

}  // namespace

bool uses_amx(const ModelFiles& m) { return ranges::contains(m.targets, MatrixUnit::amx, &Isa::matrix_unit); }

std::string isa_choice(const ModelFiles& m) {
  std::string names, supported, on_arm;
  for (std::size_t i = 0; i < m.targets.size(); ++i) {
    const Isa& isa = m.targets[i];
    names += fmt::format("{}\"{}\"", i ? ", " : "", isa.name);
    if (isa.family == Family::x86_64) supported += fmt::format("    case {}:\n      return {};\n", i, cpu_test(isa));
    if (isa.family == Family::aarch64)
      on_arm += fmt::format("#if defined(__aarch64__)\n  if (isa == {}) return true;\n#endif\n", i);
  }
  std::string body = supported.empty() ? on_arm + "  return isa == 0;\n"
                                       : on_arm + fmt::format(R"cpp(#if defined(__x86_64__)
  switch (isa) {{
    case 0:
      return true;
{}    default:
      return false;
  }}
#else
  return isa == 0;
#endif
)cpp",
                                                              supported);
  const std::string tiles = uses_amx(m) ? R"cpp(
// Linux keeps AMX's tiles from processes that have not asked for them.
[[maybe_unused]] bool may_use_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, of the component XTILEDATA
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}
)cpp"
                                        : "";
  return tiles + fmt::format(R"cpp(
constexpr const char* isa_names[] = {{{}}};
constexpr int isa_count = {};

bool runs_here(int isa) {{
{}}}

// The kernels to use: what TESSERA_ISA names, else the widest that runs here; -1 when that is not to be had.
int choose_isa() {{
  if (const char* wanted = std::getenv("TESSERA_ISA"); wanted && *wanted) {{
    for (int isa = 0; isa < isa_count; ++isa)
      if (std::strcmp(wanted, isa_names[isa]) == 0) return runs_here(isa) ? isa : -1;
    return -1;
  }}
  for (int isa = isa_count - 1; isa > 0; --isa)
    if (runs_here(isa)) return isa;
  return 0;
}}
)cpp",
                             names, m.targets.size(), body);
}

std::string dispatch(const ModelFiles& m, const std::string& program, const std::vector<std::string>& arguments,
                     Then then, int inside) {
  const std::string margin(static_cast<std::size_t>(2 + 2 * inside), ' ');
  const std::string done = then == Then::next ? "break" : fmt::format("return {}_OK", m.upper());
  std::string cases;
  std::string guard;  // the processor whose cases these are
  for (std::size_t i = 0; i < m.targets.size(); ++i) {
    const Isa& isa = m.targets[i];
    if (isa.family != Family::portable && guard != name_of(isa.family)) {
      if (!guard.empty()) cases += "#endif\n";
      guard = name_of(isa.family);
      cases += fmt::format("#if defined(__{}__)\n", guard);
    }
    std::vector<tree::Expr> passed;
    for (const std::string& a : arguments) passed.push_back(tree::name(a));
    const tree::Block call{tree::evaluate(tree::call(fmt::format("{}_{}_{}", m.name, program, isa.name), passed))};
    cases += fmt::format("{0}  case {1}:\n{2}{0}    {3};\n", margin, i, tree::print(call, 3 + inside), done);
  }
  if (!guard.empty()) cases += "#endif\n";
  return fmt::format("{0}switch (choose_isa()) {{\n{1}{0}  default:\n{0}    return {2}_ERROR_ISA;\n{0}}}\n", margin,
                     cases, m.upper());
}

}  // namespace tessera::codegen
