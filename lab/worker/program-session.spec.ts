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

describe('the programs of the lab', () => {
  const right: Readonly<Record<string, (progress: ProgramProgress) => void>> = {
    'ping-pong': ({ results }) => expect(results[0]).toBe(results[0]),
    rpc: ({ results }) =>
      expect(results[0]).toBe(String(Array.from({ length: 40 }, (_, n) => n * n).reduce((a, b) => a + b))),
    'key-value': ({ results }) => expect(results[0]).toBe('23'),
    ring: ({ results }) => expect(results[1]).toBe('50'),
    barrier: ({ results }) => expect(results).toEqual(['5', '5']),
  };
  it.each(labPrograms.map(({ name }) => name).filter((name) => !/overrun|reused|missing|wrong/.test(name)))(
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
