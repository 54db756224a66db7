#include "runtime/cli/train.hpp"

#include <cstdint>
#include <memory>
#include <system_error>

#include "runtime/cli/help.hpp"
#include "runtime/data_choice.hpp"
#include "runtime/error.hpp"
#include "runtime/numbers.hpp"
#include "runtime/ranges.hpp"

namespace tessera::runtime {
namespace {

/// With what is decided before there is a session.
struct TrainCommand : TrainOptions {
  bool overwrite = false;
};

}  // namespace

Subcommand add_train(CLI::App& app, CommandContext& context, int (*loop)(Session&), const Communicator& ranks,
                     const std::string& program) {
  const Model& model = context.model;
  const Recipe& recipe = context.recipe;
  const auto options = std::make_shared<TrainCommand>();
  options->out = context.parameters.out;
  options->command = program;
  options->ranks = &ranks;
  CLI::App* command = app.add_subcommand("train", "Train the model");
  if (!loop) command->group("");  // understood, but not among what --help lists
  add_data_options(command, options->data, options->digits, options->limit);
  command->add_option("--out", options->out, "Folder for everything the run writes")
      ->capture_default_str()
      ->type_name("DIR");
  CLI::Option* const resume =
      command->add_flag("--resume", options->resume,
                        "Go on with the run in --out, with its options; --data tells where its images have moved");
  command
      ->add_flag("--overwrite", options->overwrite,
                 "Start another run where --out holds one; its checkpoint is kept as checkpoint.previous.safetensors")
      ->excludes(resume);
  command
      ->add_flag("--isa-change", options->isa_change,
                 "Let --resume go on with another instruction set, whose last bits differ")
      ->needs(resume);
  command
      ->add_option("--epochs", options->epochs, text("Passes over the training images (default: ", recipe.epochs, ")"))
      ->check(in<std::int64_t>(0, most_epochs))
      ->type_name("N");
  command->add_option("--batch", options->batch, text("Images in a training step (default: ", recipe.batch, ")"))
      ->check(in<std::int64_t>(1, most_batch))
      ->type_name("N");
  if (model.ranks)
    command
        ->add_option("--accumulate", options->accumulate,
                     text("Batches whose gradients are averaged for one step, the parts that ranks share (default: ",
                          recipe.accumulate, ")"))
        ->check(in<std::int64_t>(1, most_batch))
        ->type_name("N");
  add_timeout_option(command, context);
  if (model.ranks)
    command->add_flag("--overlap", options->overlap,
                      "Let ranks exchange gradients while the rest of them is computed; the bits are the same");
  command->add_option("--lr", options->learning_rate, text("Learning rate (default: ", recipe.learning_rate, ")"))
      ->check(in(0.0, most_learning_rate))
      ->type_name("X");
  command
      ->add_option("--seed", options->seed,
                   text("Chooses the first parameters and the order of the images (default: ", recipe.seed, ")"))
      ->check(any_seed())
      ->type_name("N");
  command
      ->add_option("--checkpoint-every", options->checkpoint_every,
                   "Steps between checkpoints (default: every 20 seconds; and always after an epoch)")
      ->check(in<std::int64_t>(1, 1'000'000'000))
      ->type_name("N");

  CLI::Option* const init =
      command
          ->add_option(
              "--init", options->init,
              "Start from the parameters of this safetensors file (a checkpoint, or saved by PyTorch); a run that is "
              "resumed has its own")
          ->type_name("FILE");
  add_skip_option(command, options->skip)->needs(init);
  add_device_option(command, context.device);
  command->footer(text(threads_too, what_a_run_leaves, environment,
                       examples(model, {"train", "train --data mnist --epochs 10 --out run", "train --resume --out run",
                                        "train --init weights.safetensors --skip 'head.*'"})));
  const auto check = [&context, loop, options] {
    if (!loop) fail("the declaration has no loss: there is nothing to train (a recipe beside forward gives it one)");
    if (options->overlap && context.device == "cuda")
      fail("--overlap is for ranks that compute on CPUs, not for --device cuda");
    std::error_code unknown;
    if (options->ranks->leads() && !options->resume && !options->overwrite &&
        std::filesystem::is_regular_file(options->out / "checkpoint.safetensors", unknown))
      fail(options->out.string(),
           " holds a run already: --resume goes on with it, --overwrite starts another and keeps its checkpoint as "
           "checkpoint.previous.safetensors");
  };
  const auto run = [&context, loop, options](const Gpu* gpu) {
    options->gpu = gpu;
    Session session(context.model, context.recipe, *options);
    return loop(session);
  };
  return {command, run, true, check};
}

}  // namespace tessera::runtime
