/** From a completion with an error, and from a run that hangs, back to the check that refused and the line that posted. */
import { beforeAll, describe, expect, it } from 'vitest';
import { loadPrograms } from '../system/cli/perf-run.ts';
import { type WhyResult, whyOf } from '../system/cli/why.ts';
import { parsedFault } from '../system/machine/faults/index.ts';
import type { PerfArgs } from '../system/workloads/perf-plan.ts';
import { bystanders, programOf } from './machines.ts';
import { cases as protectionCases } from './programs/protection.ts';

const cases = Object.keys(protectionCases);
let protection: WhyResult;
beforeAll(async () => {
  protection = await whyOf({}, async (machine) => {
    // The requester waits for the bystander's progress.
    const programs = ['requester', 'responder'].map((name, node) => programOf('protection', name, node));
    for (const program of [...programs, ...bystanders()]) await machine.load(program);
  });
});

/** Texts of the first reasons of a case, by words of its name; and what was found against what. */
const reported: readonly (readonly [RegExp, RegExp])[] = [
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
  it('is found for every case of protection, with what was found and what it was held to', () => {
    const sends = protection.failures.filter(
      ({ node, queue, status }) => node === 0 && queue === 'send' && status !== 'WR_FLUSH_ERR',
    );
    expect(sends.length).toBe(cases.length);
    expect(new Set(sends.map(({ status }) => status))).toEqual(
      new Set(['LOC_PROT_ERR', 'REM_ACCESS_ERR', 'REM_INV_REQ_ERR', 'REM_OP_ERR']),
    );
    cases.forEach((name, index) => {
      const [, pattern] = reported.find(([words]) => words.test(name))!;
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

  it('is found for receives: too short, and into memory that is not theirs', () => {
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

  it('counts, for exhausted retries, what left and what never arrived', async () => {
    const faults = [parsedFault('packet=lost,node=0,nth=3-100')];
    const { failures, error } = await whyOf({ faults }, (machine) => loadPrograms(machine, args));
    expect(error).toBeDefined();
    const [first] = failures;
    expect([first!.status, first!.operation]).toEqual(['RETRY_EXC_ERR', 'READ']);
    expect(textOf(first!)).toMatch(/no acknowledgement.*packets left host 0.*[1-9]\d* never arrived/);
  });

  it('of a hang is the packet that never arrived, and the fault that took it', async () => {
    const faults = [parsedFault('packet=lost,node=0,nth=4')];
    const unreliable: PerfArgs = { ...args, verb: 'send', connection: 'UC' };
    const { losses, error, ...found } = await whyOf({ faults }, (machine) =>
      loadPrograms(machine, unreliable),
    );
    expect(error).toContain('nothing is left to do, but programs have not ended');
    expect(losses.count).toBe(1);
    expect(losses.first[0]!.text).toMatch(/^UC_SEND_ONLY to QP 0x\w+, PSN \d+, 64 bytes, never arrived$/);
    expect(found.faults[0]!.fired).toBe(1);
  });

  it('is empty when every request ended well', async () => {
    const { failures, unfinished, error } = await whyOf({}, (machine) => loadPrograms(machine, args));
    expect([failures, unfinished, error]).toEqual([[], [], undefined]);
  });
});
