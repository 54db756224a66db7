#include "runtime/serve/page.hpp"

#include "runtime/error.hpp"
#include "runtime/numbers.hpp"
#include "runtime/safetensors.hpp"

namespace tessera::runtime::serve {
namespace {

std::string escaped(const std::string& plain) {
  std::string out;
  for (const char c : plain) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::int64_t parameters(const Model& model) {
  std::int64_t count = 0;
  for (const tessera_parameter& p : model.parameters) count += elements(Shape(p.shape, p.shape + p.rank));
  return count;
}

std::string row(const char* name, const std::string& value) {
  return text("<tr><th scope=\"row\">", name, "</th><td>", escaped(value), "</td></tr>\n");
}

/// The labels, in a list that is folded where it is long.
std::string labels(const Model& model, const std::vector<std::string>& classes) {
  if (classes.empty()) return "";
  std::string items;
  for (const std::string& name : classes) items += "<li>" + escaped(name) + "</li>\n";
  return text("<details", classes.size() <= 20 ? " open=\"\"" : "", "><summary>", grouped(model.classes),
              " labels</summary>\n<ol start=\"0\">\n", items, "</ol></details>\n");
}

// Nothing is loaded from anywhere, which the policy lets the browser enforce; pictures are shown from the visitor's
// own disk.
constexpr const char* head = R"html(<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src blob: data:; connect-src 'self'; base-uri 'none'; form-action 'none'"/>
<link rel="icon" href="data:,"/>
<style>
:root { color-scheme: light dark; --ink: #333; --ground: #fff; --line: #ccc; --code: #f6f7f9; --accent: #2e62a6; --bar: #b9d0ee; --wrong: #c0392b; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #d8dadf; --ground: #16181c; --line: #43484f; --code: #1f2227; --accent: #7fb0ee; --bar: #2b4a70; --wrong: #ff8a7a; }
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
body { font: 16px/1.5 Helvetica, Arial, 'DejaVu Sans', sans-serif; color: var(--ink); background: var(--ground); margin: 2rem auto; max-width: 900px; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin: 0 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.6rem; border-bottom: 1px solid var(--line); padding-bottom: 0.2rem; }
label.drop { display: block; border: 2px dashed var(--line); border-radius: 0.6rem; padding: 2rem 1rem; text-align: center; cursor: pointer; }
label.drop:hover, label.drop.over, label.drop:focus-within { border-color: var(--accent); background: var(--code); }
label.drop input { position: absolute; opacity: 0; width: 1px; height: 1px; }
div.seen { display: flex; flex-wrap: wrap; gap: 1.5rem; margin-top: 1rem; align-items: flex-start; }
div.seen img { display: block; width: 220px; max-width: 100%; height: auto; border-radius: 0.3rem; image-rendering: auto; }
div.answer { flex: 1 1 260px; min-width: 0; }
div.answer div.one { position: relative; display: flex; justify-content: space-between; gap: 1rem; padding: 0.25rem 0.6rem; margin-bottom: 0.3rem; border-radius: 0.3rem; background: var(--code); overflow: hidden; }
div.answer div.one i { position: absolute; left: 0; top: 0; bottom: 0; background: var(--bar); }
div.answer div.one span { position: relative; overflow-wrap: anywhere; }
div.answer div.one span + span { font-variant-numeric: tabular-nums; white-space: nowrap; }
p.wrong { color: var(--wrong); overflow-wrap: anywhere; }
table { border-collapse: collapse; }
th { text-align: left; font-weight: 600; padding: 0.15rem 1.5rem 0.15rem 0; vertical-align: top; white-space: nowrap; }
td { padding: 0.15rem 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
pre { font-size: 0.85rem; line-height: 1.4; white-space: pre-wrap; overflow-wrap: anywhere; background: var(--code); padding: 0.8rem; border-radius: 0.3rem; }
ol { columns: 12rem; margin: 0.4rem 0; }
li { overflow-wrap: anywhere; break-inside: avoid; }
</style>
)html";

constexpr const char* drop = R"html(<h2>Try it</h2>
<label class="drop" id="drop"><input type="file" id="file" accept="image/png,image/jpeg,image/bmp"/>Drop a picture here, or click to choose one (PNG, JPEG, BMP)</label>
<div class="seen" id="seen" hidden=""><img id="picture" alt="the picture"/><div class="answer" id="answer" aria-live="polite"></div></div>
)html";

constexpr const char* script = R"html(<script>
'use strict';
const drop = document.getElementById('drop'), file = document.getElementById('file');
const seen = document.getElementById('seen'), picture = document.getElementById('picture');
const answer = document.getElementById('answer');
let shown = 0;  // the picture that was chosen last: an answer to an earlier one comes too late

function line(label, probability) {
  const one = document.createElement('div'), bar = document.createElement('i');
  one.className = 'one';
  bar.style.width = (100 * probability) + '%';
  one.append(bar);
  for (const text of [label, (100 * probability).toFixed(1) + ' %']) {
    const span = document.createElement('span');
    span.textContent = text;
    one.append(span);
  }
  return one;
}

function say(text) {
  const p = document.createElement('p');
  p.className = 'wrong';
  p.textContent = text;
  answer.replaceChildren(p);
}

async function classify(chosen) {
  if (!chosen) return;
  const turn = ++shown;
  URL.revokeObjectURL(picture.src);
  picture.src = URL.createObjectURL(chosen);
  seen.hidden = false;
  answer.textContent = 'Asking the model ...';
  try {
    const response = await fetch('/classify', {method: 'POST', body: chosen});
    const said = await response.json();
    if (turn !== shown) return;
    if (!response.ok) return say(said.error);
    answer.replaceChildren(...said.classes.map(c => line(c.name ?? 'class ' + c.class, c.probability)));
  } catch (error) {
    if (turn === shown) say('The server does not answer: ' + error.message);
  }
}

const curl = document.getElementById('curl');
curl.textContent = curl.textContent.replace('http://HOST:PORT', location.origin);
file.addEventListener('change', () => classify(file.files[0]));
for (const name of ['dragover', 'drop']) document.addEventListener(name, event => event.preventDefault());
drop.addEventListener('dragover', () => drop.classList.add('over'));
drop.addEventListener('dragleave', () => drop.classList.remove('over'));
drop.addEventListener('drop', event => {
  drop.classList.remove('over');
  classify(event.dataTransfer.files[0]);
});
</script>
)html";

}  // namespace

std::string page_of_model(const Model& model, const std::vector<std::string>& classes) {
  const auto& shape = model.image_shape;
  const std::string name = escaped(model.name);
  return text(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>", name, "</title>\n", head, "</head>\n<body>\n<h1>", name,
      "</h1>\n", drop, "<h2>The model</h2>\n<table>\n",
      row("Reads", text(shape[0] == 1 ? "grey pictures" : "pictures in colour", ", scaled to ", shape[2], " x ",
                        shape[1], " pixels")),
      row("Tells apart", text(grouped(model.classes), " classes")), row("Parameters", grouped(parameters(model))),
      row("Kernels", model.isa()),
      row("Input", text("images [-1, ", shape[0], ", ", shape[1], ", ", shape[2], "], FP32")),
      row("Output", text("outputs [-1, ", model.classes, "], FP32")), "</table>\n", labels(model, classes),
      "<h2>For programs</h2>\n<pre id=\"curl\">curl --data-binary @picture.jpg http://HOST:PORT/classify</pre>\n"
      "<p>Tensors go to <code>/v2/models/",
      name, "/infer</code>, as KServe's Open Inference Protocol has them.</p>\n", script, "</body>\n</html>\n");
}

}  // namespace tessera::runtime::serve
