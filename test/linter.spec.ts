/**
 * The linter on whole machines: programs that bypass the verbs, and drivers that are removed from under their device. Each
 * finding is true, and names the responsible process.
 */
import { describe, expect, it, vi } from 'vitest';
import { Machine } from '../machine/machine.ts';
import type { ProgramOptions } from '../machine/program.ts';
import { programOf, smallMemory } from './machines.ts';

vi.setConfig({ testTimeout: 60_000 });

async function findingsOf(programs: readonly ProgramOptions[], isRemoved: boolean) {
  await using machine = await Machine.create({ set: smallMemory, analysis: { lint: true } });
  for (const program of programs) await machine.load(program);
  await machine.run();
  if (isRemoved) await machine.removeDrivers();
  return (await machine.analyses()).flatMap(({ findings }) => findings);
}

describe('the linter on a whole machine', () => {
  it('reports a process that rings for the queues of another, and no other', async () => {
    const programs = [
      programOf('lifecycle', 'owner', 0),
      programOf('lifecycle', 'ownerPeer', 1),
      programOf('lifecycle', 'intruder', 0),
    ];
    const findings = await findingsOf(programs, true);
    expect(new Set(findings.map(({ node }) => node))).toEqual(new Set(['host0']));
    expect(new Set(findings.map(({ rule }) => rule))).toEqual(
      new Set(['doorbell-foreign-uar', 'doorbell-unknown-qp', 'doorbell-without-work']),
    );
    const unknown = findings.find(({ rule }) => rule === 'doorbell-unknown-qp')!;
    expect(unknown.count).toBeGreaterThan(5);
    expect(unknown.access).toMatch(/^a send doorbell for QP 0x\w+ by UAR page 0x\w+$/);
  });

  it('reports nothing for a life cycle with traffic, from probe to removal', async () => {
    const programs = [programOf('faulty', 'sender', 0, { args: {} }), programOf('faulty', 'receiver', 1)];
    expect(await findingsOf(programs, true)).toEqual([]);
  });
});
