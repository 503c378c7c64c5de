// Bundles the page of the reports into one file:  node build.mjs OUT.html
//
// The page holds its script and its style, and a policy that lets it run these two and nothing else: no other script, no
// style attribute of a document, no network. The program puts the data in the place of @DATA@.
import {build} from 'esbuild';
import {createHash} from 'node:crypto';
import {mkdir, readFile, rename, writeFile} from 'node:fs/promises';
import {dirname} from 'node:path';
import {fileURLToPath} from 'node:url';
import {FORM} from './src/form.js';

const kMostBytes = 1_000_000;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

async function bundled(entry) {
  const {outputFiles} = await build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    charset: 'utf8',
    format: 'iife',
    target: 'es2020',
    legalComments: 'inline',
    logLevel: 'error',
  });
  // What ends a script or a style early must not be in one.
  const text = outputFiles[0].text.trim();
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${entry} holds a tag that would end it early`);
  return text;
}

const hashOf = (text) => 'sha256-' + createHash('sha256').update(text).digest('base64');

async function main(out) {
  const script = await bundled('src/main.js');
  const style = await bundled('src/style.css');
  const parts = {FORM, SCRIPT: script, STYLE: style, SCRIPT_HASH: hashOf(script), STYLE_HASH: hashOf(style)};
  const template = await readFile(here('src/page.html'), 'utf8');
  const page = template.replace(/@([A-Z_]+)@/g, (mark, name) => (name in parts ? parts[name] : mark));
  if (page.length > kMostBytes) throw new Error(`the page has ${page.length} bytes, more than ${kMostBytes}`);
  await mkdir(dirname(out), {recursive: true});
  await writeFile(out + '.new', page);
  await rename(out + '.new', out);
}

if (process.argv.length !== 3) {
  console.error('usage: node build.mjs OUT.html');
  process.exit(2);
}
await main(process.argv[2]);
