/** The lab's programs as its page runs them, and what a reader learns of a program of his own. */
import { describe, expect, it } from 'vitest';
import { faultMenu, labPrograms } from '../page/programs.ts';
import type { ProgramOrder, ProgramProgress } from '../protocol.ts';
import { ProgramSession } from './program-session.ts';

const machine = { profile: 'connectx3-qdr', set: {}, seed: 1 };
const textOf = (name: string): string => labPrograms.find((each) => each.name === name)!.text;

async function outcomeOf(
  text: string,
  more: Partial<ProgramOrder> = {},
  stepPs = 200_000_000,
): Promise<ProgramProgress> {
  const session = new ProgramSession();
  expect(await session.load({ text, machine, faults: [], ...more })).toEqual([]);
  for (;;) {
    const progress = await session.runFor(stepPs);
    if (progress.hasEnded) return progress;
  }
}

/** Line of a text that contains this. */
const lineOf = (text: string, part: string): number =>
  text.split('\n').findIndex((line) => line.includes(part)) + 1;

const isMistake = (name: string): boolean =>
  labPrograms.find((each) => each.name === name)!.title.startsWith('Mistake');

/** Of each mistake a part of the line that is named, and of the sentence. */
const mistakes: readonly (readonly [name: string, line: string, says: RegExp])[] = [
  ['buffer-reused', 'fill(2)', /which the device reads for work request 1/],
  ['cq-overrun', 'createCq(endpoint', /CQ 0x80 of host 0 overran .* 8 entries/],
  ['missing-receive', '', /waited .* in \d+ RNR NAKs: its peer had no receive posted/],
  ['wrong-key', 'postSend(qp', /uses rkey 0x\w+; the region there has key/],
  ['short-region', 'const half = await regMr', /reaches 2048 bytes beyond the region/],
  ['deregistered', 'await deregMr', /whose region host 1 deregistered/],
  ['wrong-qpn', '{ ...toRtr', /sends to QP 0x3039, which host 1 does not have/],
  ['wrong-psn', '{ ...toRts', /begins with PSN 0xc8 \(sq_psn\), its peer expects 0x64/],
  ['wrong-qkey', 'postSend(qp', /they carry Q_Key 0x22222222, the QP has Q_Key 0x11111111/],
  ['unsignalled', 'postSend(qp', /1 request of QP .* posted unsignalled/],
  ['queue-full', 'const error = postSend', /holds 31 of 31 requests, all of them unsignalled/],
  ['lost-wakeup', 'await pollCq', /with 1 completion left in it/],
  ['one-sided', 'await spinCq', /1 WRITE, 0 READs and 0 atomics, which complete at the peer only/],
  ['both-wait', 'await spinCq', /no request that could complete there is under way/],
];

describe('the mistakes of the lab', () => {
  it.each(mistakes)('%s is found at its line', async (name, part, says) => {
    const text = textOf(name);
    const { remarks } = await outcomeOf(text, {}, 2e9);
    const remark = remarks.find((one) => says.test(one.text));
    expect(remark, JSON.stringify(remarks)).toBeDefined();
    const lines = text.split('\n').flatMap((line, at) => (line.includes(part) ? [at + 1] : []));
    if (part === '') expect(remark!.line).toBeUndefined();
    else expect(lines).toContain(remark!.line);
  });

  it('are all of the menu', () => {
    const names = labPrograms.map(({ name }) => name).filter(isMistake);
    expect(mistakes.map(([name]) => name).toSorted()).toEqual(names.toSorted());
  });
});

describe('the programs of the lab', () => {
  const right: Readonly<Record<string, (progress: ProgramProgress) => void>> = {
    'ping-pong': ({ results }) => expect(results[0]).toBe(results[0]),
    rpc: ({ results }) =>
      expect(results[0]).toBe(String(Array.from({ length: 40 }, (_, n) => n * n).reduce((a, b) => a + b))),
    'key-value': ({ results }) => expect(results[0]).toBe('23'),
    ring: ({ results }) => expect(results[1]).toBe('50'),
    barrier: ({ results }) => expect(results).toEqual(['5', '5']),
  };
  it.each(labPrograms.map(({ name }) => name).filter((name) => !isMistake(name)))(
    '%s ends with the right result and no finding',
    async (name) => {
      const progress = await outcomeOf(textOf(name));
      expect(progress.remarks).toEqual([]);
      expect(progress.results.some((result) => result !== undefined)).toBe(true);
      right[name]?.(progress);
    },
  );

  it('a buffer that is filled while it is in flight is found at its line, with the line of its post', async () => {
    const text = textOf('buffer-reused');
    const { remarks } = await outcomeOf(text);
    expect(remarks).toHaveLength(1);
    expect(remarks[0]).toMatchObject({ line: lineOf(text, 'fill(2)'), severity: 'error' });
    expect(remarks[0]!.text).toContain(`posted at line ${lineOf(text, 'postSend(qp')}`);
  });

  it('a CQ that overruns leaves fewer completions than requests', async () => {
    const { results } = await outcomeOf(textOf('cq-overrun'));
    expect(JSON.parse(results[0]!)).toMatch(/^\d of 20 completions/);
  });

  it('a SEND without a receive completes when the receive has come', async () => {
    const { results, atPs } = await outcomeOf(textOf('missing-receive'));
    expect(results[0]).toBe('0');
    expect(atPs).toBeGreaterThan(2e9);
  });

  it('a wrong rkey ends in a remote access error, and what follows is flushed', async () => {
    const { results } = await outcomeOf(textOf('wrong-key'));
    expect(JSON.parse(results[0]!)).toBe('0, 10, 5');
  });

  it.each(faultMenu.map(({ text }) => text).filter((text) => text !== ''))(
    'run with the fault %s',
    async (fault) => {
      const { hasEnded } = await outcomeOf(textOf('ping-pong'), { faults: [fault] });
      expect(hasEnded).toBe(true);
    },
  );
});

describe('a program of the reader', () => {
  it('gives the same in steps as at once', async () => {
    const text = textOf('rpc');
    const session = new ProgramSession();
    await session.load({ text, machine, faults: [] });
    let progress = await session.runFor(1_000_000);
    while (!progress.hasEnded) progress = await session.runFor(10_000_000);
    expect(progress.log).toEqual((await outcomeOf(text)).log);
  });

  it.each([
    ['that cannot be read', 'export const host0 = async () => {\n  const = 3;\n};', 2],
    ['that throws when it is read', 'const a = 1;\nthrow new Error("no");', 2],
    ['that imports something else', "import { readFileSync } from 'node:fs';\nreadFileSync('x');", undefined],
    ['without hosts', 'export const x = 1;', undefined],
  ])('%s is refused with its line', async (_what, text, line) => {
    const remarks = await new ProgramSession().load({ text, machine, faults: [] });
    expect(remarks).toHaveLength(1);
    expect(remarks[0]).toMatchObject({ line, severity: 'error' });
  });

  it('that throws is reported at its line', async () => {
    const text =
      'export async function host0({ cpu }) {\n  await cpu.sleep(1000);\n  throw new Error("lost");\n}';
    const { remarks } = await outcomeOf(text);
    expect(remarks[0]).toMatchObject({ line: 3, severity: 'error' });
    expect(remarks[0]!.text).toContain('lost');
  });

  it('that waits for ever ends, with the call that it waits in', async () => {
    const text = "export async function host0({ exchange }) {\n  await exchange.take('nothing');\n}";
    const { remarks } = await outcomeOf(text, {}, 10_000_000_000_000);
    expect(remarks[0]!.text).toMatch(/nothing/);
  });

  it.each([
    ['several in one statement', 'export const host0 = async () => 1,\n  host1 = async () => 2;'],
    ['by a pattern', 'export const { host0, two: host1 } = { host0: async () => 1, two: async () => 2 };'],
    [
      'of a type',
      'type Run = () => Promise<number>;\nexport let host0: Run = async () => 1, host1: Run = async () => { const host2 = 2; return host2; };',
    ],
  ])('may export its hosts %s', async (_what, text) => {
    expect((await outcomeOf(text)).results).toEqual(['1', '2']);
  });

  it('shares no variable with the other host', async () => {
    const text =
      'let count = 0;\nconst run = async () => ++count;\nexport const host0 = run;\nexport const host1 = run;';
    expect((await outcomeOf(text)).results).toEqual(['1', '1']);
  });
});
