import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { loadPrograms } from '../cli/perf-run.ts';
import { type WhyResult, whyOf } from '../cli/why.ts';
import { parsedFault } from '../machine/faults/index.ts';
import type { PerfArgs } from '../workloads/perf-plan.ts';

const program = (file: string): string => new URL(`../../test/programs/${file}.ts`, import.meta.url).href;

let cases: readonly string[];
let protection: WhyResult;
beforeAll(async () => {
  const module = await import(fileURLToPath(program('protection')));
  cases = Object.keys(module.cases);
  protection = await whyOf({}, async (machine) => {
    for (const [node, exportName] of ['requester', 'responder'].entries())
      await machine.load({ node, name: exportName, run: { url: program('protection'), exportName } });
  });
}, 240_000);

/** What the first reasons of a case say, by words of its name; and what was found against what. */
const told: readonly (readonly [RegExp, RegExp])[] = [
  [/shorter than/, /ended with LOC_LEN_ERR/],
  [/QP without the right/, /does not accept this operation.*asked for: .*given: /],
  [/unaligned/, /no multiple of 8.*found 0x|no multiple of 8.*0x/],
  [/(wrong lkey|wrong rkey)/, /no memory region has the key 0x\w+.*0x\w+/],
  [/of nothing/, /no memory region has the key 0x\w+.*a valid MPT entry/],
  [/past the region|before the region/, /reaches out of the region.*\[0x\w+, 0x\w+\).*\[0x\w+, 0x\w+\)/],
  [/another PD/, /another protection domain.*PD 0x\w+ of the QP.*PD 0x\w+ of the region/],
  [/without the right|without local write/, /does not give the right.*asked for: .*given: /],
];

const textOf = ({ reasons }: WhyResult['failures'][number]): string =>
  reasons.map(({ text, found = '', heldTo = '' }) => `${text} ${found} ${heldTo}`).join(' ');

describe('why a request failed', () => {
  it('is told of every case of protection, with what was found and what it was held to', () => {
    const sends = protection.failures.filter(
      ({ node, queue, status }) => node === 0 && queue === 'send' && status !== 'WR_FLUSH_ERR',
    );
    expect(sends.length).toBe(cases.length);
    expect(new Set(sends.map(({ status }) => status))).toEqual(
      new Set(['LOC_PROT_ERR', 'REM_ACCESS_ERR', 'REM_INV_REQ_ERR', 'REM_OP_ERR']),
    );
    cases.forEach((name, index) => {
      const [, pattern] = told.find(([words]) => words.test(name))!;
      expect(textOf(sends[index]!), name).toMatch(pattern);
    });
  });

  it('leads to the line that posted it', () => {
    for (const { queue, postedAt } of protection.failures)
      if (queue === 'send') expect(postedAt).toMatch(/test\/programs\/\w+\.ts:\d+$/);
  });

  it('names what a flushed request was flushed after', () => {
    const flushed = protection.failures.filter(({ status }) => status === 'WR_FLUSH_ERR');
    expect(flushed.length).toBeGreaterThan(cases.length);
    for (const { reasons } of flushed) expect(reasons[0]!.text).toContain('went to the error state when');
  });

  it('is told of receives: too short, and into memory that is not theirs', () => {
    const receives = protection.failures.filter(
      ({ queue, status }) => queue === 'receive' && status !== 'WR_FLUSH_ERR',
    );
    expect(new Set(receives.map(({ status }) => status))).toEqual(new Set(['LOC_LEN_ERR', 'LOC_PROT_ERR']));
    for (const { reasons } of receives) expect(reasons.length).toBeGreaterThan(0);
  });

  const args: PerfArgs = {
    ...{ verb: 'read', isLatency: true, sizeBytes: 64, iterations: 4, qpCount: 1, txDepth: 8, rxDepth: 8 },
    ...{ inlineBytes: 0, usesEvents: false, cqModeration: 1, mtuBytes: 0 },
  };

  it('of exhausted retries counts what left and what never arrived', async () => {
    const faults = [parsedFault('packet=lost,node=0,nth=3-100')];
    const { failures, error } = await whyOf({ faults }, (machine) => loadPrograms(machine, args));
    expect(error).toBeDefined();
    const [first] = failures;
    expect([first!.status, first!.operation]).toEqual(['RETRY_EXC_ERR', 'READ']);
    expect(textOf(first!)).toMatch(/no acknowledgement.*packets left host 0.*[1-9]\d* never arrived/);
  });

  it('says so when every request ended well', async () => {
    const { failures, unfinished, error } = await whyOf({}, (machine) => loadPrograms(machine, args));
    expect([failures, unfinished, error]).toEqual([[], [], undefined]);
  });
});
