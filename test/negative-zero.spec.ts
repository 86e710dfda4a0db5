/** No value from a machine is -0: it equals 0, but not in a test, and a program's division by it gives the opposite infinity. */
import { describe, expect, it } from 'vitest';
import { Machine } from '../machine/machine.ts';
import { eachPartition, programsOf, smallMachine } from './machines.ts';

/** Paths of values that are -0: `nodes.0.hca.busyPs`. */
function negativeZerosIn(value: unknown, path = '', seen = new Set<object>()): string[] {
  if (Object.is(value, -0)) return [path];
  if (typeof value !== 'object' || value === null || seen.has(value)) return [];
  seen.add(value);
  const entries = value instanceof Map ? [...value] : Object.entries(value);
  return entries.flatMap(([key, each]) => negativeZerosIn(each, `${path}.${String(key)}`, seen));
}

/** All plain values that a machine reports. */
const handedOutBy = async (machine: Machine): Promise<unknown> => ({
  nowPs: machine.nowPs,
  instantPs: machine.instantPs,
  programs: await machine.programs(),
  results: await machine.results(),
  log: await machine.log(),
  ledgers: await machine.ledgers(),
  held: await machine.held(),
  packets: await machine.packets(),
  report: await machine.report(),
});

describe('the values of a machine', () => {
  it('are searched for -0', () => {
    expect(negativeZerosIn({ a: [0, { b: -0 }], c: 0 })).toEqual(['.a.1.b']);
  });

  it.each(eachPartition)(
    'contain no -0 at its beginning and after a mixture of all operations, %s',
    async (partition) => {
      await using machine = await smallMachine({ partition });
      expect(negativeZerosIn(await handedOutBy(machine))).toEqual([]);
      for (const program of programsOf('mixture', 'polling', { qps: 2, rounds: 2 }))
        await machine.load(program);
      await machine.run();
      expect(negativeZerosIn(await handedOutBy(machine))).toEqual([]);
    },
  );

  it('contain none with the other adapter either', async () => {
    await using machine = await Machine.create({
      set: { 'machine.adapter': 'nic', 'host.memory.sizeMib': 64 },
    });
    await machine.runTo(1e9);
    expect(negativeZerosIn(await machine.report())).toEqual([]);
  });
});
