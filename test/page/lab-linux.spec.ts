/**
 * "A stock Linux" in browsers: the lab's worker prints, reports and decodes the same bytes as the same session in Node.js; the page
 * shows terminal, diagram and commands, pauses, goes on and goes back.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Browser, Page } from 'puppeteer-core';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect } from 'vitest';
import { labInto } from '../../build/lab.ts';
import { serveLab } from '../../cli/lab/lab-server.ts';
import { LinuxFiles } from '../../cli/lab/linux-files.ts';
import { LinuxMachine, type LinuxMachineOptions } from '../../guests/linux/index.ts';
import { LinuxSession } from '../../lab/linux/linux-session.ts';
import type { LinuxOrder } from '../../lab/protocol.ts';
import { isAll } from '../extent.ts';
import { cache } from '../guest/inside-suite.ts';
import { inBrowser } from './browser.ts';
import { drivenBrowser } from './chromium.ts';
import { drivenFirefox } from './firefox.ts';
import type { LinuxRun } from './linux-client.ts';

/** The snapshot of test/guest/linux-inside.spec.ts. */
const options = {
  kernel: 'debian',
  cache,
  pc: { coreMhz: 200, memoryMib: 160 },
} as const satisfies LinuxMachineOptions;

const folder = mkdtempSync(join(tmpdir(), 'hca-lab-linux-'));
const files = new LinuxFiles(options);

beforeAll(async () => {
  (await LinuxMachine.start(options)).close();
  await labInto(folder);
  await using bundle = await rolldown({
    input: join(import.meta.dirname, 'linux-client.ts'),
    platform: 'browser',
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'es' });
  writeFileSync(join(folder, 'linux-client.js'), output[0].code);
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true }));

const pingpong = 'ibv_rc_pingpong -g 0 -n 20 -e';
/** Typed while the drivers are loaded; the shell reads it then. The last line does not stand in what is typed. */
const typed = `ibv_devinfo; ${pingpong} & sleep 0.5; ${pingpong} localhost; echo all "done"\r`;
const order: LinuxOrder = { hosts: 1, seed: 3, inputs: [{ step: 1000, host: 0, text: typed }] };

/** The same in Node.js, and the step at which it was paused after the last line. */
async function runInNode(): Promise<{ readonly run: LinuxRun; readonly step: number }> {
  const consoles = [''];
  let commands = '';
  const paused = Promise.withResolvers<number>();
  const session = new LinuxSession(order, ({ phase, step, said, commands: ended }) => {
    consoles[0] += said[0]!;
    commands += ended.join('');
    if (phase === 'paused') paused.resolve(step);
    else if (/all done\r?\n/.test(consoles[0]!)) session.pause();
  });
  const { pc, versions } = await files.offer();
  const source = {
    coreCode: files.core(),
    snapshot: (await files.snapshot())!,
    pc: pc!,
    versions: versions!,
  };
  const running = session.run(source);
  const step = await Promise.race([paused.promise, running.then(() => -1)]);
  const run = { consoles, commands, report: session.report() };
  session.stop();
  await running;
  return { run, step };
}

async function runInPage(browser: Browser, url: string, stopAtStep: number): Promise<LinuxRun> {
  const page = await browser.newPage();
  await page.goto(`${url}#view=what-if`);
  return (await page.evaluate(
    `import('/linux-client.js').then(() => runLinux(${JSON.stringify({ ...order, stopAtStep })}))`,
  )) as LinuxRun;
}

inBrowser(
  'a stock Linux prints and reports in Chromium and in Firefox what it does in Node.js, byte for byte',
  async (tree) => {
    const { run, step } = await runInNode();
    expect(run.consoles[0]).toMatch(/state:\s+PORT_ACTIVE[\s\S]*20 iters in[\s\S]*20 iters in/);
    expect(run.commands).toMatch(/QUERY_FW[\s\S]*INIT_HCA[\s\S]*SW2HW_CQ[\s\S]*RTR2RTS_QP/);
    await using server = await serveLab(folder, 0, files);
    await using chromium = await drivenBrowser(tree);
    await using firefox = await drivenFirefox(tree);
    const runs = [chromium, firefox].map(({ browser }) => runInPage(browser, server.url, step));
    for (const inPage of await Promise.all(runs)) expect(inPage).toEqual(run);
  },
);

/** Shows the view of one host in Chromium; an error of the page fails the test. */
async function atLinux(
  tree: string,
  look: (page: Page) => Promise<void>,
  address = '#view=linux',
): Promise<void> {
  await using server = await serveLab(folder, 0, new LinuxFiles(options));
  await using driven = await drivenBrowser(tree);
  const page = await driven.browser.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) => complaints.push(`${request.url()} failed`));
  await page.setViewport({ width: 1400, height: 1000 });
  await page.goto(`${server.url}${address}`);
  await look(page);
  expect(complaints).toEqual([]);
}

const limitMs = 200_000;
const untilText = (page: Page, pattern: RegExp): Promise<unknown> =>
  page.waitForFunction(`${pattern}.test(document.body.innerText)`, { timeout: limitMs });
const untilTrue = (page: Page, condition: string): Promise<unknown> =>
  page.waitForFunction(condition, { timeout: limitMs });
const status = `document.querySelector('.linux [role=status]').innerText`;
const commandList = `document.querySelector('.commands').innerText`;

async function press(page: Page, name: string): Promise<void> {
  const button = `[...document.querySelectorAll('button')].find((each) => each.innerText.includes(${JSON.stringify(name)}) && !each.disabled)`;
  await untilTrue(page, button);
  await page.evaluate(`${button}.click()`);
}

/** Goes on to the next command, whose decoded text the page then shows first. @returns the instant at which it pauses */
async function toNextCommand(page: Page): Promise<string> {
  const before = await page.evaluate(commandList);
  await press(page, 'command');
  await untilTrue(page, `/^paused/.test(${status}) && ${commandList} !== ${JSON.stringify(before)}`);
  return (await page.evaluate(status)) as string;
}

inBrowser('a stock Linux is typed to, pauses, and goes on to each command of its driver', async (tree) => {
  await atLinux(tree, async (page) => {
    await untilText(page, /~ # modprobe -a mlx4_core/);
    await press(page, 'Pause');
    await untilTrue(page, `/^paused at/.test(${status})`);
    await page.focus('.xterm-helper-textarea');
    await page.keyboard.type('echo seen');
    const first = await toNextCommand(page);
    expect(await page.evaluate(commandList)).toMatch(/QUERY_FW .*: OK[\s\S]*firmwareMajor=2/);
    // Typed while it was paused: the console echoes it, although modprobe runs.
    await untilText(page, /echo seen/);
    const second = await toNextCommand(page);
    expect(second > first).toBe(true);
    expect(await page.evaluate(commandList)).toMatch(/^ *\d+\.\d+ ns {2}guest0 {2}commands +MAP_FA/);
    await untilTrue(page, `document.querySelector('.diagram .cell') !== null`);
    await page.evaluate(axe.source);
    const violations = await page.evaluate(
      `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
        violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(' | ')))`,
    );
    expect(violations).toEqual([]);
    await page.setViewport({ width: 400, height: 900 });
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(400);
    if (!isAll) return;
    await press(page, 'Event before');
    await untilTrue(page, `/^paused at/.test(${status}) && ${status} !== ${JSON.stringify(second)}`);
    expect(((await page.evaluate(status)) as string) < second).toBe(true);
    await toNextCommand(page);
    expect(await page.evaluate(status)).toBe(second);
  });
});

if (isAll)
  inBrowser('two stock Linuxes, each in its terminal, exchange messages over the cable', async (tree) => {
    await atLinux(
      tree,
      async (page) => {
        await untilText(page, /modprobe -a[\s\S]*modprobe -a/);
        const places = await page.$$('.xterm-helper-textarea');
        expect(places).toHaveLength(2);
        const type = async (host: number, line: string): Promise<void> => {
          await places[host]!.focus();
          await page.keyboard.type(`${line}\n`);
        };
        // Both shells read it when the drivers are loaded, at the same simulated time but for a few microseconds.
        await type(0, pingpong);
        await type(1, `sleep 2; ${pingpong} host0; echo all "done"`);
        await untilText(page, /all done/);
        const iterations = await page.evaluate(
          `[...document.querySelectorAll('.terminal-place')].map((each) => /20 iters in/.test(each.innerText))`,
        );
        expect(iterations).toEqual([true, true]);
        expect(await page.evaluate(commandList)).toMatch(/guest1[\s\S]*guest0|guest0[\s\S]*guest1/);
      },
      '#view=linux&hosts=2',
    );
  });
