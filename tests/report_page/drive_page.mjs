// What drive_page runs: a browser without a network, a few reports, and a person's hands.
import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {dirname, join} from 'node:path';
import {fileURLToPath} from 'node:url';

const [program, pageFile, modules, browserFile, scratch, screenshots] = process.argv.slice(2);
const {chromium} = createRequire(join(modules, 'package.json'))('playwright-core');
const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '../..');

function report(name, scenario, ...more) {
  const file = join(scratch, `${name}.html`);
  try {
    execFileSync(program, ['run', scenario, '--html', file, ...more], {stdio: ['ignore', 'ignore', 'inherit']});
  } catch (error) {
    if (error.status !== 1) throw error; // 1: a run says no, which is shown
  }
  return file;
}

function sweepReport(name, sweep) {
  const file = join(scratch, `${name}.html`);
  execFileSync(program, ['sweep', sweep, '--out', join(scratch, `${name}.sqlite`), '--html', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return file;
}

function written(name, text) {
  const file = join(scratch, name);
  writeFileSync(file, text);
  return file;
}

const dataOf = (file) => JSON.parse(readFileSync(file, 'utf8').match(/id="data">(.*?)<\/script>/s)[1]);
const runsOf = (file) => dataOf(file).sections.find(({kind}) => kind === 'runs').runs;

// A machine may be busy: nothing here is about time.
const kPatience = 300_000;

// Whatever was done has been handled, laid out and drawn.
const settled = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));

// Opens a page; whatever it complains of, or asks the network for, is a failure when it is closed.
async function opened(browser, file, options = {}) {
  const context = await browser.newContext({viewport: {width: 1280, height: 900}, offline: true, ...options});
  const page = await context.newPage();
  page.setDefaultTimeout(kPatience);
  const complaints = [];
  page.on('console', (message) => complaints.push(`console: ${message.text()}`));
  page.on('pageerror', (error) => complaints.push(`error: ${error.stack}`));
  page.on('request', (request) => request.url() === `file://${file}` || complaints.push(`request: ${request.url()}`));
  await page.goto(`file://${file}`);
  await page.waitForSelector('html[data-ready]');
  await settled(page); // charts take the width of their place after the first layout
  return {
    page,
    async close() {
      assert.deepEqual(complaints, []);
      await context.close();
    },
  };
}

async function shot(page, name) {
  if (screenshots) await page.screenshot({path: join(screenshots, `${name}.png`), fullPage: true});
}

const run = (page, label) => page.locator(`section.run[aria-label="${label}"]`);
const chart = (page, label, name) =>
  run(page, label)
    .locator('figure.chart')
    .filter({has: page.locator(`.plot[aria-label^="${name}"]`)});
const pixels = (figure) =>
  figure
    .locator('canvas')
    .first()
    .evaluate((canvas) => canvas.toDataURL());

// Moves the pointer to a share of a chart's width, and of its height; what the tip says, line by line.
async function hover(page, figure, x, y = 0.5) {
  const over = figure.locator('.u-over');
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * x - 3, box.y + box.height * y);
  await page.mouse.move(box.x + box.width * x, box.y + box.height * y);
  await settled(page);
  return figure.locator('.tip:visible > div').allTextContents();
}

async function drag(page, figure, from, to) {
  const over = figure.locator('.u-over');
  await over.scrollIntoViewIfNeeded();
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * from, box.y + 20);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * to, box.y + 20, {steps: 4});
  await page.mouse.up();
  await settled(page);
}

const tests = {
  async 'policies are compared, with the best marked and failures explained'(browser) {
    const {page, close} = await opened(browser, files.vgg);
    assert.equal(await page.locator('h1').textContent(), 'vgg19-offload');
    const rows = page.locator('#section-0 tbody tr');
    assert.equal(await rows.count(), 4);
    assert.match(await rows.nth(0).textContent(), /^none.*oom.*asks for 343 MiB of hbm/);
    // README: remat/sqrt takes the least time, offload/all has the least peak.
    assert.match(await rows.nth(3).locator('td.best').first().textContent(), /3\.165 s/);
    assert.match(await rows.nth(1).locator('td.best').first().textContent(), /12\.45 GiB/);
    assert.match(await run(page, 'none').textContent(), /What to try:/);
    await shot(page, 'vgg19-light');
    await close();
  },

  async 'hovering the peak tells it to the byte, with the largest that are alive'(browser) {
    const [, , eager] = runsOf(files.vgg),
      longest = Math.max(...runsOf(files.vgg).map(({makespan}) => makespan));
    const memory = eager.memories.find(({name}) => name === 'hbm');
    const {page, close} = await opened(browser, files.vgg);
    const lines = await hover(page, chart(page, 'offload/eager', 'hbm'), memory.peak.time / longest);
    assert.equal(lines[0], '470.7 ms: 13.09 GiB in hbm'); // as in the table of docs/reports.md
    assert.ok(
      lines.some((line) => /^saved 11\.89 GiB$/.test(line)),
      lines.join('\n'),
    );
    assert.ok(
      lines.some((line) => /2\.68 GiB stage_1\/conv_relu_2\/conv2d_1$/.test(line)),
      lines.join('\n'),
    );
    await shot(page, 'vgg19-hover');
    await close();
  },

  async 'a page goes to standard output, and nothing else does'() {
    let page;
    try {
      page = execFileSync(program, ['run', what('vgg19-offload'), '--html', '-'], {maxBuffer: 1 << 26, encoding: 'utf8'});
    } catch (error) {
      assert.equal(error.status, 1); // none of VGG-19 fits, which is shown
      page = error.stdout;
    }
    assert.equal(page, readFileSync(files.vgg, 'utf8'));
  },

  async 'a class is hidden and shown again'(browser) {
    const {page, close} = await opened(browser, files.vgg);
    const figure = chart(page, 'remat/sqrt', 'hbm'),
      button = run(page, 'remat/sqrt').locator('button[data-class=saved]');
    const before = await pixels(figure);
    await button.click();
    assert.equal(await button.getAttribute('aria-pressed'), 'false');
    assert.notEqual(await pixels(figure), before);
    const lines = await hover(page, figure, 0.5);
    assert.ok(!lines.some((line) => line.startsWith('saved')), lines.join('\n'));
    await page.mouse.move(0, 0);
    await button.click();
    await settled(page);
    assert.equal(await pixels(figure), before);
    await close();
  },

  async 'a map of addresses is read by pointer and keys, with its holes and the request that failed'(browser) {
    // Derived in tests/report/html/html_test.cpp: 1, 4 and 3 MiB from 0 on, 2 MiB of 10 free, 3 asked for after 15 ms.
    const {page, close} = await opened(browser, files.refused);
    const figure = chart(page, 'none', 'addresses of sram');
    assert.equal(
      await figure.locator('figcaption').textContent(),
      'addresses of sram: 3 blocks; s2.backward asks for 3 MiB, the largest free block has 2 MiB',
    );
    // The axis reaches 2 % beyond the memory.
    const at = (mebibytes) => 1 - mebibytes / 10.2;
    const block = ['s2.saved', 'saved', '3 MiB', 'at 5 MiB', 'from 10 ms to the end'];
    assert.deepEqual(await hover(page, figure, 0.8, at(6.5)), block);
    assert.deepEqual(await hover(page, figure, 0.5, at(7.5)), ['7.5 ms: 5 MiB free', 'at 5 MiB']);
    const refusal = ['15 ms: out of memory', 's2.backward asks for 3 MiB of sram', 'the largest free block has 2 MiB'];
    assert.deepEqual(await hover(page, figure, 0.999, at(5)), refusal);
    await page.mouse.move(0, 0);

    const live = figure.locator('[aria-live]');
    await figure.locator('.plot').focus();
    for (const [key, name] of [
      ['Home', 'input'],
      ['ArrowUp', 's1.saved'],
      ['ArrowRight', 's2.saved'],
      ['ArrowDown', 's1.saved'],
    ]) {
      await page.keyboard.press(key);
      assert.equal((await live.textContent()).split('. ')[0], name);
    }
    await page.keyboard.press('End');
    assert.equal(await live.textContent(), refusal.join('. '));
    const before = await pixels(figure);
    await run(page, 'none').locator('button[data-class=saved]').click();
    await settled(page);
    assert.notEqual(await pixels(figure), before);
    await figure.locator('summary').click();
    await figure.locator('tbody tr').nth(2).waitFor();
    assert.deepEqual(await figure.locator('tbody tr').last().locator('th, td').allTextContents(), [
      's2.saved',
      'saved',
      '3 MiB',
      '0',
      '5 MiB',
      '10 ms',
      'the end',
    ]);
    await shot(page, 'addresses');
    await close();

    // Nothing of it where memories have no addresses.
    const other = await opened(browser, files.vgg);
    assert.equal(await other.page.locator('figure.addresses').count(), 0);
    await other.close();
  },

  async 'many blocks are left out, and said to be'(browser) {
    const [only] = runsOf(files.longMap);
    const {blocks, left_out: leftOut} = only.memories.find(({name}) => name === 'hbm').addresses;
    assert.equal(blocks.begin.length, 10_000);
    assert.ok(leftOut > 10_000);
    const {page, close} = await opened(browser, files.longMap);
    assert.match(
      await chart(page, 'none', 'addresses of hbm').locator('figcaption').textContent(),
      new RegExp(`10,000 blocks; ${leftOut.toLocaleString('en')} short or small ones left out, of at most `),
    );
    await close();
  },

  async 'dragging zooms all charts of a run, a double click shows all'(browser) {
    const longest = Math.max(...runsOf(files.vgg).map(({makespan}) => makespan));
    const {page, close} = await opened(browser, files.vgg);
    const memory = chart(page, 'offload/all', 'hbm'),
      timeline = chart(page, 'offload/all', 'timeline');
    const before = await pixels(timeline);
    await drag(page, memory, 0.25, 0.5);
    assert.notEqual(await pixels(timeline), before);
    // In the middle of the picture is now 3/8 of the run.
    const at = (lines) => Number(lines[0].match(/^([\d.]+) s:/)[1]);
    const middle = at(await hover(page, memory, 0.5));
    assert.ok(Math.abs(middle - (0.375 * longest) / 1e12) < (0.02 * longest) / 1e12, `${middle}`);
    await shot(page, 'vgg19-zoomed');
    await memory.locator('.u-over').dblclick({position: {x: 200, y: 20}});
    await page.mouse.move(0, 0);
    await settled(page);
    assert.equal(await pixels(timeline), before);
    await close();
  },

  async 'the keyboard reaches every chart, moves the cursor and zooms'(browser) {
    const {page, close} = await opened(browser, files.vgg);
    const reached = new Set();
    for (let i = 0; i < 300; ++i) {
      await page.keyboard.press('Tab');
      const label = await page.evaluate(
        () => document.activeElement.matches('.plot') && document.activeElement.getAttribute('aria-label'),
      );
      if (label) reached.add(label);
    }
    const charts = await page
      .locator('.plot')
      .evaluateAll((plots) => plots.map((plot) => plot.getAttribute('aria-label')));
    for (const label of charts) assert.ok(reached.has(label), `${label} is not reached`);

    const figure = chart(page, 'offload/all', 'timeline'),
      live = figure.locator('[aria-live]');
    await figure.locator('.plot').focus();
    await page.keyboard.press('Home');
    assert.match(await live.textContent(), /^forward: .*0 s to/);
    const first = await live.textContent();
    await page.keyboard.press('ArrowRight');
    assert.notEqual(await live.textContent(), first);
    await page.keyboard.press('ArrowDown');
    assert.match(await live.textContent(), /on pcie to dram$/);
    const before = await pixels(figure);
    await page.keyboard.press('+');
    await settled(page);
    assert.notEqual(await pixels(figure), before);
    await page.keyboard.press('0');
    await page.keyboard.press('Escape');

    const memory = chart(page, 'offload/all', 'hbm');
    await memory.locator('.plot').focus();
    await page.keyboard.press('End');
    assert.match(await memory.locator('[aria-live]').textContent(), /^3\.873 s: /);
    await close();
  },

  async 'every chart has its numbers as a table'(browser) {
    const {page, close} = await opened(browser, files.gpt);
    for (const name of ['timeline', 'vram0']) {
      const figure = chart(page, 'pipeline/1f1b (microbatches: 16)', name);
      await figure.locator('summary').click();
      await figure.locator('tbody tr').nth(20).waitFor();
    }
    const first = chart(page, 'pipeline/1f1b (microbatches: 16)', 'timeline').locator('tbody tr').first();
    assert.match(await first.textContent(), /^gpu0forward.*00 s/);
    await close();
  },

  async 'a pipeline is a Gantt chart with the numbers of its microbatches'(browser) {
    const {page, close} = await opened(browser, files.gpt);
    const figure = chart(page, 'pipeline/gpipe (microbatches: 16)', 'timeline');
    const lines = await hover(page, figure, 0.002, 0.03);
    assert.match(lines[0], /^forward: \d+ steps/);
    assert.equal(lines[1], 'microbatch 0');
    assert.match(lines.at(-1), /on gpu0$/);
    // 1F1B holds the forwards of four microbatches, then one goes forward as one goes back: the middle of the last device alternates.
    const other = chart(page, 'pipeline/1f1b (microbatches: 16)', 'timeline');
    await other.locator('.plot').focus();
    const seen = [];
    for (const key of ['Home', 'ArrowDown', 'ArrowDown', 'ArrowDown', ...Array(7).fill('ArrowRight')]) {
      await page.keyboard.press(key);
      seen.push(
        (await other.locator('[aria-live]').textContent()).replace(
          /^(\w+): .*?\. microbatch (\d+)\..* on (\w+)$/s,
          '$1 $2 $3',
        ),
      );
    }
    assert.deepEqual(seen.slice(3, 9), [
      'forward 0 gpu3',
      'backward 0 gpu3',
      'forward 1 gpu3',
      'backward 1 gpu3',
      'forward 2 gpu3',
      'backward 2 gpu3',
    ]);
    await shot(page, 'gpt2-pipeline');
    await close();
  },

  async 'an overlapped pair shows both of its operators'(browser) {
    const {page, close} = await opened(browser, files.dualpipe);
    const dual = run(page, 'pipeline/dualpipe (microbatches: 20)');
    assert.match(await dual.locator('.legend').first().textContent(), /forward.*backward input.*backward weight/);
    const [, , {tracks, makespan}] = runsOf(files.dualpipe),
      pair = tracks[0].pairs[0][0];
    const starts = tracks[0].start.slice(0, pair + 1).reduce((a, b) => a + b, 0);
    const longest = Math.max(...runsOf(files.dualpipe).map((it) => it.makespan));
    assert.ok(starts < makespan);
    const lines = await hover(
      page,
      chart(page, 'pipeline/dualpipe (microbatches: 20)', 'timeline'),
      (starts + tracks[0].length[pair] / 2) / longest,
      0.03,
    );
    assert.match(lines[0], /^pair: .* of microbatch \d+ with .* of microbatch \d+$/);
    await shot(page, 'dualpipe');
    await close();
  },

  async 'runs share one scale, or have their own'(browser) {
    const {page, close} = await opened(browser, files.vgg);
    const figure = chart(page, 'remat/sqrt', 'timeline'),
      before = await pixels(figure);
    await page.getByRole('button', {name: 'one scale for all runs'}).click();
    await settled(page);
    assert.notEqual(await pixels(figure), before);
    await page.locator('.chooser button', {hasText: 'offload/all'}).click();
    assert.equal(await run(page, 'offload/all').isVisible(), false);
    await close();
  },

  async 'print has no hints for the hand, and breaks no line of a message'(browser) {
    const {page, close} = await opened(browser, files.vgg);
    await page.setViewportSize({width: 703, height: 1000}); // as below
    const hint = page.getByText('Drag over a chart to zoom');
    assert.equal(await hint.isVisible(), true);
    await page.emulateMedia({media: 'print'});
    assert.equal(await hint.isVisible(), false);
    const {lines, height} = await run(page, 'none').locator('.words').first().evaluate((words) => {
      const {lineHeight, paddingTop, paddingBottom} = getComputedStyle(words);
      return {
        lines: words.textContent.trimEnd().split('\n').length,
        height: (words.clientHeight - parseFloat(paddingTop) - parseFloat(paddingBottom)) / parseFloat(lineHeight),
      };
    });
    assert.equal(Math.round(height), lines);
    await shot(page, 'print');
    await close();
  },

  async 'eight policies fit a window and a sheet of paper, with their budgets'(browser) {
    const {page, close} = await opened(browser, files.eight);
    const hidden = () =>
      page.locator('#section-0 .scroll').evaluate((region) => region.scrollWidth - region.clientWidth);
    assert.equal(await page.locator('#section-0 tbody tr').count(), 8);
    assert.equal(await hidden(), 0);
    const names = await page.locator('#section-0 tbody th').allTextContents();
    assert.deepEqual(names.slice(4, 7), [
      'remat/rotor (budget:\u00a06\u00a0GiB)',
      'remat/rotor (budget:\u00a08\u00a0GiB)',
      'hybrid/pofo (budget:\u00a06\u00a0GiB)',
    ]);
    for (const policy of ['remat/rotor', 'hybrid/pofo']) {
      const figure = chart(page, `${policy} (budget: 6 GiB)`, 'hbm');
      assert.match(await figure.locator('figcaption').textContent(), / % of a budget of 6 GiB$/);
    }
    // A4 upright with margins of 12 mm is 703 pixels wide.
    await page.setViewportSize({width: 703, height: 1000});
    await page.emulateMedia({media: 'print'});
    assert.equal(await hidden(), 0);
    const widths = await page.locator('.plot canvas').evaluateAll((all) => all.map((it) => it.offsetWidth));
    assert.deepEqual(new Set(widths), new Set([703]));
    await shot(page, 'eight');
    await close();
  },

  async 'a mesh is drawn on its machines, and a GPU tells its place and its memory'(browser) {
    const {page, close} = await opened(browser, files.mesh);
    const mesh = page.locator('.mesh').first();
    assert.equal(await mesh.locator('.machine').count(), 8); // of 64 GPUs: each machine is a stage
    assert.equal(await mesh.locator('.gpu').count(), 64);
    const words = dataOf(files.mesh).sections.find(({kind}) => kind === 'mesh').machines[1].gpus[2].words;
    assert.match(words, /^gpu10: data 2, pipeline 1; hbm10 peaks at .* of 80 GiB/);
    const gpu = mesh.locator('.gpu').nth(10);
    assert.equal(await gpu.getAttribute('aria-label'), words);
    assert.equal(await gpu.locator('title').textContent(), words);
    await gpu.focus();
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), words);
    // Nothing of the picture lies outside of it, and none of it beside the page.
    const fits = await mesh.locator('svg').evaluate((svg) => {
      const {width, height, left} = svg.getBoundingClientRect();
      const parts = svg.getBBox();
      return parts.x + parts.width <= width && parts.y + parts.height <= height && left + width <= innerWidth;
    });
    assert.ok(fits);
    assert.match(await mesh.locator('table').textContent(), /nvswitch, 450 GB\/s.*nic, 50 GB\/s/);
    await shot(page, 'mesh-light');
    await page.emulateMedia({colorScheme: 'dark'});
    await settled(page);
    await shot(page, 'mesh-dark');
    await close();
  },

  async 'dark, narrow and printed'(browser) {
    const light = await opened(browser, files.pi);
    const picture = await pixels(light.page.locator('figure.chart').first());
    const paper = () => light.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.equal(await paper(), 'rgb(255, 255, 255)');
    await light.page.emulateMedia({colorScheme: 'dark'});
    await settled(light.page);
    assert.equal(await paper(), 'rgb(17, 22, 29)');
    assert.notEqual(await pixels(light.page.locator('figure.chart').first()), picture);
    await shot(light.page, 'raspberry-pi-dark');
    // Printed from the dark it is light all the same, charts included.
    const pdf = await light.page.pdf({
      format: 'A4',
      printBackground: true,
      path: screenshots ? join(screenshots, 'raspberry-pi.pdf') : undefined,
    });
    assert.ok(pdf.length > 20_000);
    // Charts are drawn anew for the width of a page, and for the window again.
    const widest = () =>
      light.page.locator('.uplot').evaluateAll((plots) => Math.max(...plots.map((plot) => plot.offsetWidth)));
    const onScreen = await widest();
    await light.page.evaluate(() => dispatchEvent(new Event('beforeprint')));
    assert.equal(await widest(), 900);
    await light.page.evaluate(() => dispatchEvent(new Event('afterprint')));
    assert.equal(await widest(), onScreen);
    await light.page.emulateMedia({media: 'print', colorScheme: 'dark'});
    assert.equal(await paper(), 'rgb(255, 255, 255)');
    assert.equal(await light.page.locator('.zoom').first().isVisible(), false);
    await light.close();

    const narrow = await opened(browser, files.vgg, {viewport: {width: 380, height: 800}});
    assert.ok(await narrow.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await shot(narrow.page, 'vgg19-narrow');
    await narrow.close();
  },

  async 'a hundred thousand events: peaks stay exact, from afar and from near'(browser) {
    const [only] = runsOf(files.long);
    assert.ok(only.tracks.reduce((sum, {start}) => sum + start.length, 0) > 90_000);
    const hbm = only.memories.find(({name}) => name === 'hbm');
    const {page, close} = await opened(browser, files.long);
    const figure = chart(page, 'offload/eager', 'hbm');
    // One stage in the middle is larger by 1 MiB: one event among many in one pixel.
    const at = hbm.peak.time / only.makespan;
    const lines = await hover(page, figure, at);
    assert.match(
      lines[0],
      new RegExp(`: ${(hbm.peak.bytes / 2 ** 20).toPrecision(4).replace(/\.?0+$/, '')} MiB in hbm$`),
    );
    await drag(page, figure, Math.max(0, at - 0.05), Math.min(1, at + 0.05));
    for (let i = 0; i < 8; ++i) await run(page, 'offload/eager').getByRole('button', {name: 'zoom in'}).click();
    await close();
  },

  async 'one memory more than fit at once is one more memory'(browser) {
    const [only] = runsOf(files.nine);
    assert.equal(only.memories.length, 9);
    const {page, close} = await opened(browser, files.nine);
    const button = page.getByRole('button', {name: /more memor/});
    assert.equal(await button.textContent(), '1 more memory');
    await button.click();
    await chart(page, 'none', 'dram').waitFor();
    assert.equal(await button.count(), 0);
    await close();
  },

  async 'text of users stays text'(browser) {
    for (const file of [files.hostile, files.examples]) {
      const {page, close} = await opened(browser, file);
      assert.equal(await page.evaluate(() => window.harmed), undefined);
      assert.equal(await page.locator('img, i, b').count(), 0);
      await close();
    }
    const {page, close} = await opened(browser, files.hostile);
    assert.match(await page.locator('main').textContent(), /<\/script><script>window\.harmed = true<\/script>/);
    await close();
  },

  async 'fronts, bars and heat maps are read by pointer and keys'(browser) {
    const {page, close} = await opened(browser, files.examples);
    const figure = page.locator('#section-1 figure.chart');
    await figure.locator('.plot').focus();
    await page.keyboard.press('Home');
    assert.match(
      await figure.locator('[aria-live]').textContent(),
      /^a10 x 1\. a10\. price 100 EUR\. energy per sample 4 J\. nothing is better/,
    );
    await page.keyboard.press('End');
    assert.match(await figure.locator('[aria-live]').textContent(), /^h100 x 1/);
    // x from 0 to 540, y from 0 to 4.32: the point (300, 3.5).
    const lines = await hover(page, figure, 300 / 540, 1 - 3.5 / 4.32);
    assert.deepEqual(lines, ['t4 x 4', 't4', 'price 300 EUR', 'energy per sample 3.5 J']);
    assert.match(
      await page.locator('#section-2').textContent(),
      /against 57\.9 samples\/s.*\+8 GiB of memory\+31 %.*PCIe 3-12 %/s,
    );
    const cells = page.locator('#section-3 td');
    assert.deepEqual(await cells.allTextContents(), ['1.5 s', '\u2605 1.25 s', '3 s', '2.5 s', 'oom', '5 s']);
    await cells.first().focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), '2.5 s');
    const marks = page.locator('#section-4 figure.chart');
    await marks.locator('.plot').focus();
    await page.keyboard.press('Home');
    assert.match(await marks.locator('[aria-live]').textContent(), /^a10\. .*on the front/);
    // By x, then by y: with the bound where there is one.
    const curves = page.locator('#section-5 figure.chart');
    await curves.locator('.plot').focus();
    await page.keyboard.press('Home');
    assert.match(await curves.locator('[aria-live]').textContent(), /^1 GiB\. search\. .*overhead 30 %\. no plan of its kind passes 20 %/);
    await page.keyboard.press('End');
    assert.doesNotMatch(await curves.locator('[aria-live]').textContent(), /passes/);
    await curves.locator('summary').click();
    await curves.locator('tbody').waitFor();
    const bounds = await curves.locator('tbody tr td:last-child').allTextContents();
    assert.deepEqual(bounds, ['20 %', '25 %', '0 %', '']);
    await shot(page, 'examples');
    await close();
  },

  async 'a sweep is heat maps that share their shades, and a front'(browser) {
    const {page, close} = await opened(browser, files.links);
    assert.equal(await page.locator('.subtitle').textContent(), 'sweep, 81 runs');
    // Maps of one quantity have one link.
    assert.deepEqual((await page.locator('nav a').allTextContents()).slice(3), [
      'Throughput against memory',
      'Throughput',
      'Overhead',
      'Peak of the fullest memory',
      'Energy per sample',
    ]);
    // docs/reports.md: at a batch of 224 `none` does not fit; recomputing costs 33 %, offloading less from 16 GB/s on.
    const map = page.locator('section', {hasText: 'Overhead: workload.batch 224'});
    const row = async (name) => {
      const cells = map.locator('tr', {has: page.locator(`th:text-is("${name}")`)}).locator('td');
      return cells.allTextContents();
    };
    assert.deepEqual(await row('none'), Array(9).fill('oom'));
    assert.deepEqual(await row('remat/sqrt'), Array(9).fill('33 %'));
    assert.match((await row('offload/eager')).join(), /,110 %,63 %,31 %,11 %,/);
    // 33 % is as light as in the other maps: 0 to 281 % for all three.
    assert.match(await map.locator('caption').textContent(), /0 % \(lightest\) to 281 % \(darkest\)$/);
    assert.equal(await map.locator('td.shade-1', {hasText: '33 %'}).count(), 9);
    const front = page.locator('#section-3 figure.chart');
    await front.locator('.plot').focus();
    await page.keyboard.press('Home');
    assert.match(
      await front.locator('[aria-live]').textContent(),
      /^bandwidth [\d.]+ GB\/s, batch 64\. offload\/eager\. peak of the fullest memory 4\.704 GiB\. throughput .* samples\/s/,
    );
    await shot(page, 'sweep-light');
    await page.emulateMedia({colorScheme: 'dark'});
    await settled(page);
    await shot(page, 'sweep-dark');
    await close();
  },

  async 'a map that is wider than a sheet of paper is printed in parts'(browser) {
    const {page, close} = await opened(browser, files.wide);
    const names = (tables) =>
      tables.evaluateAll((all) =>
        all.flatMap((table) => [...table.rows[0].cells].slice(1).map((cell) => cell.textContent)),
      );
    const map = page.locator('section', {has: page.locator('h2:text-is("Throughput")')});
    const wide = map.locator('.wide table'), parts = map.locator('.on-paper table');
    assert.equal((await names(wide)).length, 24);
    assert.deepEqual(await names(parts), await names(wide));
    assert.equal(await parts.first().isVisible(), false);
    await page.emulateMedia({media: 'print'});
    assert.equal(await wide.isVisible(), false);
    const sheet = 718; // CSS pixels: A4 less 1 cm on either side
    await page.setViewportSize({width: sheet, height: 1000});
    for (const part of await parts.all()) assert.ok((await part.boundingBox()).width <= sheet);
    await shot(page, 'wide-print');
    await close();
  },

  async 'holes of a search are in a table, and marked on the map of what it found'(browser) {
    const {page, close} = await opened(browser, files.holes);
    const section = (heading) => page.locator('section', {has: page.locator(`h2:text-is("${heading}")`)});
    // Four microbatches do not divide 5, 6 and 7.
    assert.match(
      await section('Holes of the search').locator('tbody tr').first().textContent(),
      /^0pipeline\/gpipe405 to 7, 9 to 11, /,
    );
    const rings = section('Found workload.batch').locator('td .ring');
    assert.equal(await rings.count(), 6);
    assert.match(await rings.first().getAttribute('aria-label'), /^does not hold with 5 to 7, /);
    await close();
  },

  async 'captions fit a telephone, however wide their tables are'(browser) {
    const {page, close} = await opened(browser, files.links, {viewport: {width: 400, height: 800}});
    const ends = await page
      .locator('caption span, figcaption')
      .evaluateAll((all) => all.map((it) => it.getBoundingClientRect().right));
    assert.ok(ends.length > 12 && Math.max(...ends) <= 400, `${ends}`);
    await close();
  },
};

const chainOf = (stages) => `scenario: long
platform:
  platform: bench
  memories: {hbm: {capacity: 16 GiB}, dram: {capacity: unlimited}}
  processors: {gpu: {memory: hbm}}
  links: {pcie: {between: [hbm, dram], bandwidth: 12 GB/s}}
workload:
  workload: long
  chain:
${stages}policy: [offload/eager]
`;
const repeated = (count, first) => `    - repeat: ${count}
      items:
        - {name: "${first}{i}", forward: 1 ms, backward: 2 ms, output: 100 KiB, saved: 200 KiB}
`;
const kRefused = `scenario: refused
platform:
  platform: bench
  memories: {sram: {capacity: 10 MiB, allocator: first-fit}}
  processors: {cpu: {memory: sram}}
workload:
  workload: pair
  input: 1 MiB
  chain:
    - {name: s1, forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 4 MiB}
    - {name: s2, forward: 5 ms, backward: 10 ms, output: 2 MiB, saved: 3 MiB}
policy: none
`;
const kHostile = `scenario: hostile
platform:
  platform: bench
  memories: {hbm: {capacity: 16 GiB}}
  processors: {gpu: {memory: hbm}}
  provenance: {memories.hbm.capacity: {quality: datasheet, source: "</script><script>window.harmed = true</script>"}}
workload: {workload: pair, chain: [{name: s1, forward: 1 ms, backward: 2 ms, saved: 200 KiB}]}
policy: none
`;

const kNine = `scenario: nine
platform:
  platform: bench
  memories: {hbm: {capacity: 16 GiB, bandwidth: 1 TB/s}, dram: {capacity: unlimited}}
  processors: {gpu: {memory: hbm, compute: {fp32: 1 TFLOP/s}}}
  links: {pcie: {between: [hbm, dram], bandwidth: 12 GB/s}}
  cluster: {count: 8, shared: [dram], topology: mesh, link: {name: nvlink, bandwidth: 20 GB/s}}
workload: {workload: w, input: {shape: [64]}, loss: sum, batch: 8, layers: [{linear: 256}, relu, {linear: 64}]}
parallel: {data: 8}
sharding: {stage: 3}
state: {parameters: dram}
policy: none
`;

const what = (name) => join(root, 'scenarios/what-if', `${name}.yaml`);
const kEight = `
scenario: eight
platform: v100-sxm2-host
workload: {model: resnet50, batch: 96}
policy:
  [none, offload/all, offload/eager, remat/sqrt, {name: remat/rotor, budget: 6 GiB}, {name: remat/rotor, budget: 8 GiB},
   {name: hybrid/pofo, budget: 6 GiB}, {name: offload/greedy, budget: 8 GiB}]
`;

const kWide = `
sweep: wide
base: vgg19-offload
policies: [offload/eager]
grid:
  links.pcie.bandwidth: {from: 1 GB/s, to: 24 GB/s, count: 24}
  workload.batch: [64, 128]
`;

const files = {
  vgg: report('vgg', what('vgg19-offload')),
  gpt: report('gpt', what('gpt2-4gpus')),
  dualpipe: report('dualpipe', join(root, 'scenarios/papers/dualpipe.yaml')),
  mesh: report('mesh', what('llama3-70b-64-h100')),
  pi: report('pi', what('resnet18-cifar-raspberry-pi')),
  long: report(
    'long',
    written(
      'long.yaml',
      chainOf(
        repeated(12000, 'a') +
          '    - {name: large, forward: 1 ms, backward: 2 ms, output: 100 KiB, saved: 1224 KiB}\n' +
          repeated(12000, 'b'),
      ),
    ),
  ),
  refused: report('refused', written('refused.yaml', kRefused)),
  longMap: report(
    'long-map',
    written('long-map.yaml', chainOf(repeated(12000, 'a'))),
    ...['--policy', 'none', '--set', 'memories.hbm.allocator=first-fit'],
  ),
  nine: report('nine', written('nine.yaml', kNine)),
  eight: report('eight', written('eight.yaml', kEight)),
  links: sweepReport('links', join(root, 'scenarios/sweeps/vgg19-links.yaml')),
  holes: sweepReport('holes', join(root, 'tests/golden/scenarios/holes.yaml')),
  wide: sweepReport('wide', written('wide.yaml', kWide)),
  hostile: report('hostile', written('hostile.yaml', kHostile)),
  examples: written(
    'examples.html',
    readFileSync(pageFile, 'utf8').replace('@DATA@', () =>
      readFileSync(join(here, 'examples.json'), 'utf8').replaceAll('<', '\\u003c'),
    ),
  ),
};

const browser = await chromium.launch({
  executablePath: browserFile,
  args: ['--no-sandbox', '--disable-gpu'],
  timeout: kPatience,
});
let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test(browser);
    console.log(`ok      ${name}`);
  } catch (error) {
    ++failed;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}
await browser.close();
process.exitCode = failed > 0 ? 1 : 0;
