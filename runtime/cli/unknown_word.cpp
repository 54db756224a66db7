#include "runtime/cli/unknown_word.hpp"

#include <algorithm>
#include <iostream>
#include <iterator>

#include "runtime/error.hpp"
#include "runtime/labels.hpp"
#include "runtime/safetensors.hpp"
#include "runtime/suggestion.hpp"

namespace tessera::runtime {
namespace {

/// The names by which an option can be given on the command line.
std::vector<std::string> names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// An option that was given as an empty word, as a variable of a shell that is not set is; none: "".
std::string empty_option(std::initializer_list<const CLI::App*> commands) {
  for (const CLI::App* const command : commands)
    for (const CLI::Option* const option : command->get_options())
      if (std::ranges::count(option->results(), std::string())) return option->get_name();
  return "";
}

}  // namespace

std::string about_unknown(const CLI::App& app, const CLI::App* used, const std::vector<std::string>& extras) {
  const auto unknown =
      std::ranges::find_if(extras, [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
  std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App* a) { return !a->get_group().empty(); });
  const auto meant = [](const std::string& near) { return near.empty() ? "" : text("; did you mean ", near, "?"); };
  if (!used && (unknown == extras.end() || unknown != extras.begin())) {
    std::vector<std::string> names;
    for (const CLI::App* const command : commands) names.push_back(command->get_name());
    return text("there is no command ", printable(extras.front()), meant(nearest(extras.front(), names)));
  }
  if (unknown == extras.end()) return text(used->get_name(), " does not take ", printable(extras.front()));
  const std::string option = unknown->substr(0, unknown->find('='));
  std::vector<std::string> names = names_of(app);
  if (used) std::ranges::copy(names_of(*used), std::back_inserter(names));
  std::string takers;
  for (const CLI::App* const command : commands)
    if (std::ranges::count(names_of(*command), option)) takers += text(takers.empty() ? "" : ", ", command->get_name());
  const std::string who = used ? used->get_name() + " has no option " : "there is no option ";
  if (!takers.empty()) return text(who, printable(option), ", which belongs to ", takers);
  return text(who, printable(option), meant(nearest(option, names)));
}

std::optional<int> parsed(CLI::App& app, int argc, char** argv, const std::string& what_to_do) {
  const CLI::App* used = nullptr;
  std::string said;
  try {
    app.parse(argc, argv);
    if (app.get_subcommands().empty()) {
      said = "say what to do, for example " + what_to_do;
    } else {
      used = app.get_subcommands().back();
      const std::string empty = empty_option({&app, used});
      if (empty.empty()) return std::nullopt;
      said = empty + " is empty";
    }
  } catch (const CLI::ParseError& wrong) {
    if (wrong.get_exit_code() == 0) return app.exit(wrong);
    const std::vector<CLI::App*> commands = app.get_subcommands();
    if (!commands.empty()) used = commands.back();
    const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&wrong) && !app.remaining(true).empty();
    said = unknown ? about_unknown(app, used, app.remaining(true)) : without_controls(wrong.what());
  }
  std::cerr << app.get_name() << ": " << said << " (" << app.get_name() << (used ? " " + used->get_name() : "")
            << " --help tells more)" << std::endl;
  return 2;
}

}  // namespace tessera::runtime
