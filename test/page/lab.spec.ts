/** The lab in headless Chromium: its page shows the model's results in Node.js, and nothing is cut off. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Page } from 'puppeteer-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { labInto } from '../../build/lab.ts';
import { serveLab } from '../../cli/lab/lab-server.ts';
import { LinuxFiles } from '../../cli/lab/linux-files.ts';
import { bytesText, countText, timeText } from '../../explain/text/format.ts';
import { wordsOf } from '../../explain/text/words.ts';
import { silentProgress } from '../../guests/linux/index.ts';
import { instantsOf, levelAt, recordsOfCell } from '../../lab/page/moment.ts';
import { labPrograms } from '../../lab/page/programs.ts';
import { spentUntil } from '../../lab/page/spent.ts';
import { estimate } from '../../lab/worker/closed-form.ts';
import { fabric } from '../../lab/worker/fabric.ts';
import { operation } from '../../lab/worker/operation/picture.ts';
import { ProgramSession } from '../../lab/worker/program-session.ts';
import { transfer } from '../../lab/worker/transfer.ts';
import { latency } from '../../lab/worker/what-if.ts';
import { inBrowser } from './browser.ts';
import { drivenBrowser } from './chromium.ts';

const folder = mkdtempSync(join(tmpdir(), 'hca-lab-'));
beforeAll(() => labInto(folder), 240_000);
afterAll(() => rmSync(folder, { recursive: true }));

const limitMs = 100_000;
const machine = { profile: 'connectx3-qdr', set: {}, seed: 1 };

it('the licences of its packages are in the folder', () => {
  const text = readFileSync(join(folder, 'licences.txt'), 'utf8');
  for (const name of ['@xterm/xterm', 'v86', 'uplot', 'comlink', 'lit-html', 'typed-binary'])
    expect(text).toMatch(new RegExp(`^${name} \\d`, 'm'));
});

it('files are named after their contents', () => {
  expect(readdirSync(folder).filter((name) => name.endsWith('.js'))).toEqual(
    [
      ...[
        'start-model',
        'page',
        'view-operation',
        'view-other-way',
        'view-what-if',
        'view-program',
        'view-fabric',
      ],
      ...['model.worker', 'form.worker', 'program.worker', 'machine', 'library', 'parser', 'protocol'],
      ...['view-linux', 'linux.worker', 'v86', 'xterm'],
      ...[
        'bars',
        'cable',
        'closed-form',
        'comlink',
        'compare-plan',
        'diagram-layout',
        'event-details',
        'format',
        'lit-html',
        'moment',
        'player',
        'program-worker',
        'programs',
        'ref',
        'rolldown-runtime',
        'scenario-titles',
        'time-axis',
        'watched',
        'words',
        'workload',
      ],
    ]
      .map((name) => `${name}.js`)
      .toSorted(),
  );
});

/** A cache without a snapshot: "A stock Linux" offers to make it. With one, it is tested in lab-linux.spec.ts. */
const withoutSnapshot = (): LinuxFiles =>
  new LinuxFiles({
    kernel: 'debian',
    cache: { folder: join(folder, 'cache'), mirror: undefined, progress: silentProgress },
  });

/** One browser for all; each test has its own context, as in a new browser. */
let driven: ReturnType<typeof drivenBrowser> | undefined;
afterAll(async () => (await driven)?.[Symbol.asyncDispose]());

/** Shows an address of the lab; an error of the page fails the test. */
async function atAddress(
  tree: string,
  hash: string,
  look: (page: Page, url: string) => Promise<void>,
): Promise<void> {
  driven ??= drivenBrowser(tree);
  await using server = await serveLab(folder, 0, withoutSnapshot());
  await using context = await (await driven).browser.createBrowserContext();
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) => complaints.push(`${request.url()} failed`));
  page.on('request', (request) => {
    if (!request.url().startsWith(server.url) && !/^(data|blob):/.test(request.url()))
      complaints.push(request.url());
  });
  await page.goto(`${server.url}${hash}`);
  await look(page, server.url);
  expect(complaints).toEqual([]);
}

const textOf = (page: Page): Promise<string> => page.evaluate('document.body.innerText') as Promise<string>;
const untilText = (page: Page, pattern: RegExp): Promise<unknown> =>
  page.waitForFunction(`${pattern}.test(document.body.innerText)`, { timeout: limitMs });
/** Presses a button by its text, when it exists. */
async function press(page: Page, name: string): Promise<void> {
  const button = `[...document.querySelectorAll('button')].find((each) => each.innerText === ${JSON.stringify(name)})`;
  await page.waitForFunction(button, { timeout: limitMs });
  await page.evaluate(`${button}.click()`);
}

/** Text of the page when all computing has ended. */
async function settledText(page: Page): Promise<string> {
  await page.waitForFunction(`!/imulating …|Loading …|Drawing …|running/.test(document.body.innerText)`, {
    timeout: limitMs,
  });
  return textOf(page);
}

/** Text of the view of programs; its editor draws only the visible lines. */
const saidOf = (page: Page): Promise<unknown> =>
  page.evaluate(
    `[...document.querySelectorAll('[role=status], .breaks, .results, .moment')].map((each) => each.innerText)`,
  );

/** Opens the page's own address again. @returns its text then */
async function textOfReopened(page: Page, ready: RegExp): Promise<string> {
  const address = page.url();
  await page.goto('about:blank');
  await page.goto(address);
  await untilText(page, ready);
  return settledText(page);
}

inBrowser('"One operation" draws the instants and bytes that its records have in Node.js', async (tree) => {
  const question = { machine, scenario: 'write', sizeBytes: 4096, mtuBytes: 0, isWarm: true } as const;
  const picture = await operation(question);
  const nsText = (ps: number): string => `${(ps / 1000).toFixed(3)} ns`;
  const { cqePs, lastBytesPs } = picture;
  await atAddress(tree, '#size=4096&caches=warm', async (page) => {
    await untilText(page, /Milestones/);
    const text = await textOf(page);
    expect(text).toContain(`${timeText(picture.latencyPs)} from the post to the completion, status SUCCESS`);
    expect(text).toContain(`${timeText(lastBytesPs! - cqePs!)} before the last bytes are in the memory`);
    for (const { atPs, text: milestone } of picture.milestones)
      expect(text.replace(/\s+/g, ' ')).toContain(`${nsText(atPs)} ${milestone}`);

    // The axis has the milestones, queues and credits; the other picture has the caches' validity.
    const drawnOn = (row: string): Promise<number> =>
      page.evaluate(
        `document.querySelectorAll('.axis-row[data-name="${row}"] > *').length`,
      ) as Promise<number>;
    expect(await drawnOn('milestones')).toBe(picture.milestones.length);
    for (const { process, name } of picture.levels) expect(await drawnOn(`${process} ${name}`)).toBe(1);
    expect(picture.levels.some(({ name }) => name.includes('credit limit'))).toBe(true);
    const cold = await operation({ ...question, isWarm: false });
    await untilText(page, /the caches save/);
    expect(await textOf(page)).toContain(
      `Cold it takes ${timeText(cold.latencyPs)} with ${cold.misses} misses: the caches save ${timeText(cold.latencyPs - picture.latencyPs)}.`,
    );

    // The frame that contradicts the textbook: the CQE has arrived, while TLPs with payload are in flight.
    await press(page, 'show this frame');
    await untilText(page, /CQE: in memory now|MWr cqe: in memory now/);
    const frame = await textOf(page);
    expect(frame).toContain(nsText(cqePs!));
    const underWay = picture.records.filter(
      ({ kind, label, fromPs, arrivesPs }) =>
        kind === 'tlp' && label === 'MWr payloadWrite' && fromPs <= cqePs! && cqePs! < arrivesPs!,
    );
    expect(frame.split('MWr payloadWrite to host1').length - 1).toBe(underWay.length);
    expect(underWay.length).toBeGreaterThan(0);
    expect(await page.$$('.diagram .way title')).not.toHaveLength(0);
    expect(await page.evaluate('location.hash')).toBe(`#size=4096&caches=warm&at=${cqePs}`);

    // Bytes: the CQE's fields as the bus analyser decoded them.
    const cqe = picture.records.find(({ inMemoryPs, label }) => inMemoryPs === cqePs && label === 'MWr cqe')!;
    for (const at of cqe.decoded)
      for (const { fields } of picture.decoded[at]!.sections)
        for (const field of fields) expect(frame).toContain(field);

    // Forward and back go to the next instants with an event.
    const instants = instantsOf(picture);
    await press(page, 'Forward ▶');
    const next = instants.find((ps) => ps > cqePs!)!;
    await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(nsText(next))})`);
    await press(page, '◀ Back');
    await page.waitForFunction(`location.hash.endsWith('at=${cqePs}')`);

    // Steps go to the next event of a single block.
    await page.select('.player select', 'hca0 doorbells');
    await press(page, '◀ Back');
    const doorbell = instantsOf(picture, recordsOfCell(picture, 'hca0', 'doorbells')).findLast(
      (ps) => ps < cqePs!,
    )!;
    await page.waitForFunction(`location.hash.endsWith('at=${doorbell}&block=hca0+doorbells')`);
  });
});

inBrowser(
  '"One operation" over iWARP draws the frames and the TCP engine that its records have in Node.js',
  async (tree) => {
    const question = {
      machine,
      scenario: 'wrong-key',
      network: 'iwarp',
      sizeBytes: 64,
      mtuBytes: 0,
      isWarm: false,
    } as const;
    const picture = await operation(question);
    await atAddress(tree, '#operation=wrong-key', async (page) => {
      await untilText(page, /status REM_ACCESS_ERR/);
      await page.select('label:nth-of-type(2) select', 'iwarp');
      await untilText(page, /TERMINATE/);
      expect(await page.evaluate('location.hash')).toBe('#operation=wrong-key&network=iwarp');
      const text = await settledText(page);
      expect(text).toContain(
        `${timeText(picture.latencyPs)} from the post to the completion, status SUCCESS`,
      );
      for (const { text: milestone } of picture.milestones)
        expect(text.replace(/\s+/g, ' ')).toContain(milestone);
      expect(await page.$$(`.diagram [aria-label^="hca0 ${wordsOf('tcpEngine')}"]`)).toHaveLength(1);
    });
  },
);

inBrowser(
  'the address of a chosen block and event opens the same picture, with its MTT entries',
  async (tree) => {
    const picture = await operation({
      machine,
      scenario: 'write',
      sizeBytes: 64,
      mtuBytes: 0,
      isWarm: false,
    });
    const fieldsOf = ({ decoded }: (typeof picture.records)[number]): readonly string[] =>
      decoded.flatMap((at) => picture.decoded[at]!.sections.flatMap(({ fields }) => fields));
    const event = picture.records.findIndex((record) =>
      fieldsOf(record).some((field) => /pageAddress=/.test(field)),
    );
    const { fromPs } = picture.records[event]!;
    await atAddress(tree, `#at=${fromPs}&block=hca0+dmaRead&event=${event}`, async (page) => {
      await untilText(page, /the caches save/);
      const text = await settledText(page);
      expect(text).toContain('Chosen');
      for (const field of fieldsOf(picture.records[event]!)) expect(text).toContain(field);
      expect(await page.evaluate(`document.querySelector('.player select').value`)).toBe('hca0 dmaRead');
      expect(await page.$$('.cell.chosen')).toHaveLength(1);
      await press(page, 'Forward ▶');
      const [next] = instantsOf(picture, recordsOfCell(picture, 'hca0', 'dmaRead')).filter(
        (ps) => ps > fromPs,
      );
      await page.waitForFunction(`location.hash === '#at=${next}&block=hca0+dmaRead'`);
      const stepped = await settledText(page);
      expect(await textOfReopened(page, /the caches save/)).toBe(stepped);
    });
  },
);

inBrowser('"The other way" draws what the ledgers of both hosts have', async (tree) => {
  const picture = await transfer({ machine, path: 'sockets', sizeBytes: 4096 });
  const half = Math.round(picture.latencyPs / 2000) * 1000;
  await atAddress(tree, `#view=other-way&size=4096&at=${half}`, async (page) => {
    await untilText(page, /programmed I\/O\s+\d+/);
    const rows = (await page.evaluate(
      `[...document.querySelectorAll('tbody tr')].map((row) => row.innerText.split(/\\t/))`,
    )) as string[][];
    const both = (what: 'cyclesTotal' | 'systemCalls' | 'interrupts'): string =>
      picture.hosts.map((host) => countText(host[what])).join(' / ');
    expect(rows.find(([name]) => name === picture.title)?.slice(0, 5)).toEqual([
      picture.title,
      timeText(picture.latencyPs),
      both('cyclesTotal'),
      both('systemCalls'),
      both('interrupts'),
    ]);
    // The bars show the time spent up to the instant.
    const labels = (await page.evaluate(
      `[...document.querySelectorAll('.bar')].map((bar) => bar.getAttribute('aria-label'))`,
    )) as string[];
    picture.hosts.forEach(({ work }, node) => {
      const spent = spentUntil(work, half).map(({ name, amount }) => `${wordsOf(name)} ${countText(amount)}`);
      expect(labels).toContain(`${picture.title}, host ${node}: ${spent.join(', ')}`);
    });
  });
});

inBrowser('"A fabric" draws what the queues and ports of a run in Node.js have', async (tree) => {
  const choice = { topology: 'star:4', pattern: 'incast', sizeBytes: 65_536, messages: 4 } as const;
  const picture = await fabric({ machine, network: 'infiniband', ...choice });
  const half = Math.round(picture.toPs / 2000) * 1000;
  await atAddress(tree, `#view=fabric&topology=star:4&at=${half}`, async (page) => {
    await untilText(page, /Jain/);
    expect(await textOf(page)).toContain(timeText(picture.durationPs));
    const heights = (await page.evaluate(
      `[...document.querySelectorAll('.gauge .level')].map((bar) => Number(bar.getAttribute('height')))`,
    )) as number[];
    const shares = picture.queues.map((queue) => (levelAt(queue, half) ?? 0) / picture.gaugeBytes);
    expect(Math.max(...shares)).toBeGreaterThan(0.2);
    expect(heights).toEqual(shares.map((share) => 24 * share));
    const rows = (await page.evaluate(
      `[...document.querySelectorAll('tbody tr')].map((row) => row.innerText.split(/\\t/))`,
    )) as string[][];
    for (const { node, port, mostBytes } of picture.queues)
      expect(rows.find(([name]) => name === `switch ${node}, port ${port}`)?.[3]).toBe(bytesText(mostBytes));
    await press(page, 'Forward ▶');
    const next = Math.min(
      ...picture.queues.flatMap(({ steps }) => steps.map(([atPs]) => atPs)).filter((atPs) => atPs > half),
    );
    await page.waitForFunction(`location.hash.includes('at=${next}')`, { timeout: limitMs });
  });
});

inBrowser('"What if" shows the figures of the closed form and of the simulation', async (tree) => {
  const message = { verb: 'read', sizeBytes: 4096, mtuBytes: 0, inlineBytes: 0 } as const;
  const { totalPs } = estimate(machine, message);
  const { meanPs } = await latency(machine, message);
  await atAddress(tree, '#view=what-if&verb=read&size=4096', async (page) => {
    await untilText(page, /million messages a second/);
    const text = await textOf(page);
    expect(text).toContain(`${timeText(Math.round(totalPs))} by the closed form`);
    expect(text).toContain(`${timeText(Math.round(meanPs))} simulated`);
    // A second machine next to it, with a longer cable; both are in the address.
    await press(page, 'Compare with another');
    await page.waitForFunction(`location.hash.endsWith('&side=B')`, { timeout: limitMs });
    await page.focus('input[aria-label="Cable length"]');
    await page.keyboard.press('End');
    const far = { ...machine, set: { 'wire.cableMetres': 1000 } };
    const farText = `${timeText(Math.round(estimate(far, message).totalPs))} by the closed form`;
    await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(farText)})`, {
      timeout: limitMs,
    });
    expect(await textOf(page)).toContain(`${timeText(Math.round(totalPs))} by the closed form`);
    expect(page.url()).toContain('other.set=wire.cableMetres:1000&');
  });
});

inBrowser('a slider changes figures and address, and the address shows the same again', async (tree) => {
  await atAddress(tree, '#view=what-if', async (page, url) => {
    await untilText(page, /by the closed form/);
    const slider = 'input[aria-label="Cable length"]';
    await page.focus(slider);
    await page.keyboard.press('End');
    const set = { 'wire.cableMetres': 1000 };
    const { totalPs } = estimate(
      { ...machine, set },
      { verb: 'write', sizeBytes: 64, mtuBytes: 0, inlineBytes: 0 },
    );
    const expected = `${timeText(Math.round(totalPs))} by the closed form`;
    await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(expected)})`, {
      timeout: limitMs,
    });
    await page.waitForFunction(`location.hash === '#view=what-if&set=wire.cableMetres:1000'`, {
      timeout: limitMs,
    });
    await page.goto('about:blank');
    await page.goto(`${url}#view=what-if&set=wire.cableMetres:1000`);
    await page.waitForFunction(`document.body.innerText.includes(${JSON.stringify(expected)})`, {
      timeout: limitMs,
    });
  });
});

inBrowser('a program runs as in Node.js, and a mistake stands at its line', async (tree) => {
  const { text } = labPrograms.find(({ name }) => name === 'buffer-reused')!;
  const session = new ProgramSession();
  await session.load({ text, machine, faults: [] });
  let progress = await session.runFor(1e9);
  while (!progress.hasEnded) progress = await session.runFor(1e9);
  await atAddress(tree, '#view=program&program=buffer-reused', async (page) => {
    await press(page, 'Run');
    await untilText(page, /ended at/);
    const shown = await textOf(page);
    expect(shown).toContain(`ended at ${timeText(progress.atPs)}`);
    for (const { line, text: remark } of progress.remarks) expect(shown).toContain(`line ${line}: ${remark}`);
    for (const { text: line } of progress.log) expect(shown).toContain(line);
    expect(await page.$$('.cm-lint-marker-error')).toHaveLength(1);
    // The address contains how far it has run, and the same seed gives the same results.
    await page.waitForFunction(`location.hash.includes('ran=${progress.atPs + 1}&')`, { timeout: limitMs });
    const said = await saidOf(page);
    await textOfReopened(page, /ended at/);
    expect(await saidOf(page)).toEqual(said);
    await press(page, 'Restart');
    await untilText(page, /not started/);
    await press(page, 'Step');
    await untilText(page, /standing at/);
    await page.waitForFunction(`location.hash.includes('ran=1000000&')`, { timeout: limitMs });
    await press(page, 'Continue');
    await untilText(page, /ended at/);
    expect(await saidOf(page)).toEqual(said);
  });
});

inBrowser(
  'a breakpoint stops before its line, in each round, and the diagram shows the instant',
  async (tree) => {
    const { text } = labPrograms.find(({ name }) => name === 'write-and-poll')!;
    const lines = text.split('\n');
    const line = lines.findIndex((each) => each.includes('postSend(')) + 1;
    // The device counts the posts of each line itself.
    const session = new ProgramSession();
    await session.load({ text, machine, faults: [] });
    while (!(await session.runFor(200_000_000)).hasEnded);
    const posts = (await session.operations()).filter((each) => each.line === line);
    await atAddress(tree, '#view=program&program=write-and-poll', async (page) => {
      const gutterOf = (at: number): string =>
        `[...document.querySelectorAll('.cm-lineNumbers .cm-gutterElement')].find((each) => each.textContent === '${at}')`;
      const clickGutter = async (at: number): Promise<void> => {
        await page.waitForFunction(gutterOf(at), { timeout: limitMs });
        await page.evaluate(`${gutterOf(at)}.scrollIntoView({ block: 'center' })`);
        const { x, y } = (await page.evaluate(
          `(() => { const { x, y } = ${gutterOf(at)}.getBoundingClientRect(); return { x, y }; })()`,
        )) as { x: number; y: number };
        await page.mouse.click(x + 5, y + 5);
      };
      const marked = (): Promise<unknown> =>
        page.evaluate(
          `[...document.querySelectorAll('.program-line')].map((each) => [each.textContent, each.dataset.hosts])`,
        );
      const breaks = (): Promise<unknown> =>
        page.evaluate(`[...document.querySelectorAll('.breaks button')].map((each) => each.innerText)`);

      // A line that cannot stop passes its breakpoint to the next line that can.
      await clickGutter(1);
      await untilText(page, /Line 1 cannot stop by itself: the breakpoint is at line \d+/);
      await page.click('.breaks button');
      expect(await breaks()).toEqual([]);
      await clickGutter(line);
      expect(await breaks()).toEqual([`line ${line} ✕`]);
      expect(await page.$$('.cm-gutterElement .breakpoint')).toHaveLength(2);

      let before = 0;
      for (const { node, postedPs } of posts.slice(0, 3)) {
        await press(page, before === 0 ? 'Run' : 'Continue');
        await page.waitForFunction(
          `!/ran=${before}&/.test(location.hash) && document.querySelector('.moment .diagram') && /before line ${line} of host ${node}/.test(document.body.innerText)`,
          { timeout: limitMs },
        );
        const standsPs = Number(/ran=(\d+)/.exec(page.url())![1]);
        // The line runs next: its post has not been made, the earlier one has.
        expect(standsPs).toBeGreaterThan(before);
        expect(standsPs).toBeLessThanOrEqual(postedPs);
        expect(postedPs - standsPs).toBeLessThan(1_000_000);
        expect(await marked()).toContainEqual([lines[line - 1], expect.stringContaining(`host ${node}`)]);
        expect(await page.$eval('.moment .diagram', (each) => each.getAttribute('aria-label'))).toContain(
          `at ${timeText(standsPs)}`,
        );
        before = standsPs;
      }
      await settledText(page);
      const said = await saidOf(page);
      await textOfReopened(page, /before line/);
      expect(await saidOf(page)).toEqual(said);

      // Restart keeps it; an edit above moves it; the key clears it.
      await press(page, 'Restart');
      await untilText(page, /not started/);
      expect(await breaks()).toEqual([`line ${line} ✕`]);
      await page.focus('.cm-content');
      await page.keyboard.down('Control');
      await page.keyboard.press('Home');
      await page.keyboard.up('Control');
      await page.keyboard.press('Enter');
      await page.waitForFunction(
        `document.querySelector('.breaks button')?.innerText === 'line ${line + 1} ✕'`,
        { timeout: limitMs },
      );
      for (let down = 0; down < line - 1; down++) await page.keyboard.press('ArrowDown');
      await page.keyboard.press('F9');
      await page.waitForFunction(`document.querySelector('.breaks button') === null`, { timeout: limitMs });
      await press(page, 'Run');
      await untilText(page, /ended at/);
    });
  },
);

inBrowser('the line at which each program waits is marked in the editor, step by step', async (tree) => {
  const { text } = labPrograms.find(({ name }) => name === 'ping-pong')!;
  const session = new ProgramSession();
  await session.load({ text, machine, faults: [] });
  while (!(await session.runFor(200_000_000)).hasEnded);
  const [first] = await session.operations();
  await session.load({ text, machine, faults: [] });
  const { atPs: beganPs } = await session.runFor(first!.postedPs);
  const ranSoFar = (page: Page, ps: number): Promise<unknown> =>
    page.waitForFunction(
      `/standing at/.test(document.body.innerText) && /ran=${ps}(&|$)/.test(location.hash)`,
      {
        timeout: limitMs,
      },
    );
  await atAddress(tree, `#view=program&ran=${beganPs}`, async (page) => {
    await ranSoFar(page, beganPs);
    for (let step = 1; step <= 4; step++) {
      const { lines, atPs } = await session.runFor(1_000_000);
      await press(page, 'Step');
      await ranSoFar(page, atPs);
      const marked = await page.evaluate(`[...document.querySelectorAll('.cm-line')].flatMap((line, at) =>
        line.classList.contains('program-line') ? [[line.textContent, line.dataset.hosts]] : [])`);
      const known = [...new Set(lines)].filter((line) => line !== undefined).toSorted((a, b) => a - b);
      expect(known.length).toBeGreaterThan(0);
      expect(marked).toEqual(
        known.map((line) => [
          text.split('\n')[line - 1],
          lines.flatMap((each, host) => (each === line ? [`host ${host}`] : [])).join(', '),
        ]),
      );
      // The mark is a colour and a word in the margin; the text contains the same.
      const shown = await textOf(page);
      for (const [host, line] of lines.entries()) expect(shown).toContain(`Host ${host} at line ${line}:`);
    }
  });
});

inBrowser(
  'an operation that a program posted opens in the diagram, by keyboard, and from its address',
  async (tree) => {
    const { text } = labPrograms.find(({ name }) => name === 'ping-pong')!;
    const session = new ProgramSession();
    await session.load({ text, machine, faults: [] });
    while (!(await session.runFor(200_000_000)).hasEnded);
    const operations = await session.operations();
    const at = operations.findIndex(({ node, ordinal }) => node === 1 && ordinal === 7);
    const { line, latencyPs, operation: verb } = operations[at]!;
    await atAddress(tree, '#view=program', async (page, url) => {
      await press(page, 'Run');
      await untilText(page, /ended at/);
      await untilText(page, /Operations of the program/);
      expect(await textOf(page)).toContain(`1 to 20 of ${operations.length}`);
      const rows = (await page.evaluate(
        `[...document.querySelectorAll('.posted tbody tr')].map((row) => row.innerText.split(/\\t/))`,
      )) as string[][];
      expect(rows[at]!.slice(0, 3)).toEqual(['1, 7', String(line), `${verb}, 64 B`]);
      expect(rows[at]![4]).toBe(timeText(latencyPs!));
      await page.focus(`.posted button[aria-label^="Show operation 7 of host 1, ${verb} of line ${line},"]`);
      await page.keyboard.press('Enter');
      await untilText(page, /Milestones/);
      const shown = await settledText(page);
      expect(shown).toContain(
        `${verb} of 64 B by host 1: ${timeText(latencyPs!)} from the post to the completion, status SUCCESS`,
      );
      expect(shown).toContain('The last bytes are in the memory of host 0');
      expect(await page.evaluate('location.hash')).toMatch(/posted=1:7/);
      expect(await textOfReopened(page, /Milestones/)).toBe(shown);
      await press(page, 'Back to the program');
      await untilText(page, /ended at/);
      await page.goto('about:blank');
      await page.goto(`${url}#program=ping-pong&posted=0:999`);
      await untilText(page, /Host 0 posts 20 operations, counted from 0: operation 999 does not exist/);
    });
  },
);

inBrowser('a program that never comes back is ended, and another runs after it', async (tree) => {
  const spinning = 'export async function host0() {\n  for (;;);\n}';
  await atAddress(tree, '#view=program', async (page) => {
    await page.waitForSelector('.cm-content');
    await page.evaluate(
      `(() => { const view = document.querySelector('.cm-content').cmTile?.view ?? document.querySelector('.cm-content').cmView.view;
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: ${JSON.stringify(spinning)} } }); })()`,
    );
    await untilText(page, /not started/);
    await press(page, 'Run');
    await untilText(page, /The program was ended/);
    await page.select('select', 'key-value');
    await untilText(page, /not started/);
    await press(page, 'Run');
    await untilText(page, /23 keys found/);
  });
});

/** Each view, with a text that appears when it has its figures. */
const views = [
  ['#size=4096&caches=warm', /Milestones/],
  ['#view=other-way&size=64', /programmed I\/O\s+\d+/],
  ['#view=what-if', /million messages a second/],
  ['#view=program&program=rpc', /not started/],
  ['#view=program&program=rpc&ran=9000000000', /Later operations/],
  ['#view=program&program=write-and-poll&breaks=34,42&ran=3910000000', /block at work/],
  ['#program=ping-pong&posted=1:7', /Milestones/],
  ['#view=fabric&topology=dumbbell:4&traffic=victim&at=40000000', /Jain/],
  ['#view=linux', /Make the snapshot/],
] as const;

inBrowser('levels stand until they change, and are not drawn before they are known', async (tree) => {
  const { levels, fromPs, toPs } = await operation({
    machine,
    scenario: 'wrong-key',
    sizeBytes: 64,
    mtuBytes: 0,
    isWarm: false,
  });
  const samples = Array.from({ length: 101 }, (_, at) => fromPs + (at * (toPs - fromPs)) / 100);
  // A sample exactly at a step is on its edge.
  const isNearStep = (steps: (typeof levels)[number]['steps'], ps: number): boolean =>
    steps.some(([atPs]) => Math.abs(atPs - ps) < (toPs - fromPs) / 500);
  expect(levels.some(({ steps }) => steps[0]![0] > fromPs + (toPs - fromPs) / 10)).toBe(true);
  await atAddress(tree, '#operation=wrong-key&size=64', async (page) => {
    await untilText(page, /Milestones/);
    for (const { process, name, steps } of levels) {
      const most = Math.max(...steps.map(([, value]) => value));
      const clear = samples.filter((each) => !isNearStep(steps, each));
      const places = clear.map((ps) => (ps - fromPs) / (toPs - fromPs));
      const areHigh = (await page.evaluate(`(() => {
        const path = document.querySelector('.axis-row[data-name="${process} ${name}"] path');
        const { width, height } = path.ownerSVGElement.viewBox.baseVal;
        return ${JSON.stringify(places)}.map((place) =>
          [height - 0.5, height / 2].map((y) => path.isPointInFill(new DOMPoint(width * place, y))));
      })()`)) as [boolean, boolean][];
      for (const [at, ps] of clear.entries()) {
        const value = steps.findLast(([atPs]) => atPs <= ps)?.[1];
        const [isKnown, isOverHalf] = areHigh[at]!;
        expect(isKnown, `${process} ${name} at ${ps}`).toBe(value !== undefined);
        if (value === 0) expect(isOverHalf, `${process} ${name} at ${ps}`).toBe(false);
        if (value === most && most > 0) expect(isOverHalf, `${process} ${name} at ${ps}`).toBe(true);
      }
    }
  });
});

/** Pixels by which the page is wider than its window. */
const excessOf = (page: Page): Promise<unknown> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth');

/** Tables wider than their place, by name. */
const cutTables = (page: Page): Promise<unknown> =>
  page.evaluate(
    `[...document.querySelectorAll('.scroll')].filter((place) => place.scrollWidth > place.clientWidth + 1).map((place) => place.ariaLabel)`,
  );

/** Fails if the page is wider than its window, or a table or a chart is cut off. */
async function fits(page: Page, where: string): Promise<void> {
  for (const width of [400, 1100, 2500, 800]) {
    await page.setViewport({ width, height: 900 });
    expect(await cutTables(page), `${where} at ${width}`).toEqual([]);
    expect(await excessOf(page), `${where} at ${width}`).toBe(0);
    // Parts that would be cut off are drawn again to fit.
    await page.waitForFunction(
      `[...document.querySelectorAll('.chart')].every((place) => [...place.querySelectorAll('*')].every((part) =>
        part.getBoundingClientRect().right <= place.getBoundingClientRect().right + 1))`,
      { timeout: 10_000 },
    );
  }
}

/** Fails if a part of the page lacks a name or role, or has too little contrast. */
async function isForEverybody(page: Page, where: string): Promise<void> {
  const found = await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html, any }) => html.slice(0, 200) + ' ' + (any[0]?.message ?? '')).join(' | ')))`,
  );
  expect(found, where).toEqual([]);
}

inBrowser(
  'each view is nowhere wider than the window and has names, roles and contrast for everybody, light and dark',
  async (tree) => {
    await atAddress(tree, views[0][0], async (page, url) => {
      for (const [at, [hash, ready]] of views.entries()) {
        if (at > 0) {
          await page.goto('about:blank');
          await page.goto(`${url}${hash}`);
        }
        await untilText(page, ready);
        await page.evaluate(axe.source);
        for (const value of ['light', 'dark']) {
          await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value }]);
          await fits(page, `${hash}, ${value}`);
          await isForEverybody(page, `${hash}, ${value}`);
        }
      }
    });
  },
);

inBrowser('a chart that is not drawn anew yet makes nothing wider than the window', async (tree) => {
  await atAddress(tree, '', async (page, url) => {
    // The browser never reports a change of a place's size: drawn parts keep their width.
    await page.evaluateOnNewDocument(
      'globalThis.ResizeObserver = class { observe() {} unobserve() {} disconnect() {} }',
    );
    await page.setViewport({ width: 800, height: 900 });
    await page.goto('about:blank');
    await page.goto(`${url}#view=what-if`);
    await untilText(page, /by the closed form/);
    await page.setViewport({ width: 400, height: 900 });
    expect(await page.$eval('.chart canvas', (canvas) => canvas.clientWidth)).toBeGreaterThan(400);
    expect(await excessOf(page)).toBe(0);
  });
});

inBrowser('an operation is stepped through by keyboard alone', async (tree) => {
  await atAddress(tree, '#size=64', async (page) => {
    await untilText(page, /Milestones/);
    const focused = (): Promise<string> =>
      page.evaluate(
        `document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? ''`,
      ) as Promise<string>;
    const tabTo = async (pattern: RegExp): Promise<void> => {
      for (let count = 0; count < 80 && !pattern.test(await focused()); count++)
        await page.keyboard.press('Tab');
      expect(await focused()).toMatch(pattern);
    };
    await tabTo(/^Forward to the next event$/);
    await page.keyboard.press('Enter');
    await page.waitForFunction(`/at=\\d+/.test(location.hash)`);
    await tabTo(/^hca0 requester/);
    await page.keyboard.press('Enter');
    await page.waitForSelector('.cell.chosen[aria-pressed="true"]');
    expect(await page.$eval('.player .main', (button) => button.textContent)).toBe('Play');
  });
});

inBrowser('without the headers for shared memory the page says so', async (tree) => {
  driven ??= drivenBrowser(tree);
  await using context = await (await driven).browser.createBrowserContext();
  const plain = createServer((request, response) => {
    const name = request.url === '/' ? 'index.html' : request.url!.slice(1);
    const type =
      { html: 'text/html', js: 'text/javascript', css: 'text/css' }[name.split('.').at(-1)!] ?? 'text/plain';
    response.writeHead(200, { 'Content-Type': type }).end(readFileSync(join(folder, name)));
  });
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  try {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${(plain.address() as AddressInfo).port}/`);
    await untilText(page, /Cross-Origin-Opener-Policy/);
  } finally {
    plain.closeAllConnections();
    plain.close();
  }
});
