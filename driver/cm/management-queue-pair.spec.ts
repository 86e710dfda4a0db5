/** QP1 as the stock driver opens it, and the WQE of a MAD, held to what Linux wrote (golden captures a-probe, x-kernel-mads). */
import { expect, it } from 'vitest';
import { qpMailbox } from '../../abi/qpc.ts';
import { linesOf, readGolden } from '../../abi/testing/golden.ts';
import { fromHex, toHex } from '../../base/bytes.ts';
import type { Cpu } from '../platform.ts';
import { inputOf } from '../testing-answers.ts';
import { captured, TestContext } from '../testing-context.ts';
import { MadAgent } from './mad-agent.ts';
import { ManagementQueuePair } from './management-queue-pair.ts';

/** Without the numbers and positions that belong to one run. */
function comparable(bytes: Uint8Array): unknown {
  const { optionalParameterMask, context } = qpMailbox.decode(bytes);
  const { pd, uarPage, sendCqn, receiveCqn, mttAddress, logPageSize4k, doorbellRecordAddress, ...same } =
    context;
  return { optionalParameterMask, same };
}

it.each(['RST2INIT_QP', 'INIT2RTR_QP', 'RTR2RTS_QP'] as const)(
  'sheet 3.17: %s of QP1 equals Linux’s',
  async (name) => {
    const { machine, driver } = await TestContext.open();
    await ManagementQueuePair.open(machine.cpu, driver.device, () => undefined);
    const command = machine.last(name);
    expect(command.inputModifier).toBe(514);
    expect(comparable(command.input)).toEqual(comparable(inputOf(captured('a-probe', name, '0x202'))));
  },
);

it('sheet 6.3: the WQE of a MAD to LID 2 equals Linux’s, except for the addresses of its data', async () => {
  const { machine, driver } = await TestContext.open();
  const pair = await ManagementQueuePair.open(machine.cpu, driver.device, () => undefined);
  const line = linesOf(readGolden(), 'wqe').find(({ file, qpn }) => file === 'x-kernel-mads' && qpn === 514)!;
  const golden = fromHex(line.bytes);
  // It was the 23rd MAD that QP1 sent, so its PSN is 22.
  for (let sent = 0; sent <= 22; sent++)
    expect(pair.post(machine.cpu, new Uint8Array(256).fill(7), { lid: 2, serviceLevel: 0 })).toBe(true);
  const at = Buffer.from(machine.memory.buffer).indexOf(Buffer.from(golden.subarray(0, 40)));
  expect(at).toBeGreaterThan(0);
  const own = machine.memory.slice(at, at + golden.length);
  expect(toHex(own.subarray(0, 48))).toBe(toHex(golden.subarray(0, 48)));
  // Byte counts and key of both pointers, and the position of the ICRC.
  for (const [from, to] of [
    [48, 56],
    [64, 72],
    [80, 96],
  ] as const)
    expect(toHex(own.subarray(from, to))).toBe(toHex(golden.subarray(from, to)));
});

it('waits until the time at which another core, whose code ran before, has posted', async () => {
  const { machine, driver } = await TestContext.open();
  const pair = await ManagementQueuePair.open(machine.cpu, driver.device, () => undefined);
  /** Another core, at its own time; a cycle takes 400 ps. */
  const coreAt = (startPs: number) => {
    let ownPs = startPs;
    const charge = (_cause: string, cycles: number): void => {
      ownPs += 400 * cycles;
    };
    const stopwatch = () => ({ elapsedPs: 0, exactElapsedPs: 0 });
    return Object.create(machine.cpu, {
      ownPs: { get: () => ownPs },
      charge: { value: charge },
      stopwatch: { value: stopwatch },
    }) as Cpu;
  };
  const [ahead, behind] = [coreAt(12_000_000), coreAt(400_000)];
  for (const cpu of [ahead, behind]) pair.post(cpu, new Uint8Array(256), { lid: 1, serviceLevel: 0 });
  expect([ahead.ownPs, behind.ownPs]).toEqual([12_000_000, 12_000_000]);
});

it('an agent with a full queue keeps 2,048 MADs waiting, and counts dropped ones', async () => {
  const { machine, driver } = await TestContext.open();
  const agent = await MadAgent.open(machine.cpu, driver.device, new Map());
  for (let at = 0; at < 128 + 2048 + 3; at++)
    agent.send(machine.cpu, new Uint8Array(256), { lid: 1, serviceLevel: 0 });
  expect(agent.counts).toMatchObject({ sent: 128, overflowed: 3 });
});

it('accepts no more sends than it has room for, and releases everything', async () => {
  const { machine, driver } = await TestContext.open();
  const before = machine.framesTaken;
  const pair = await ManagementQueuePair.open(machine.cpu, driver.device, () => undefined);
  const posted = Array.from({ length: 129 }, () =>
    pair.post(machine.cpu, new Uint8Array(256), { lid: 1, serviceLevel: 0 }),
  );
  expect(posted.filter(Boolean)).toHaveLength(128);
  await pair.close(machine.cpu);
  expect(machine.framesTaken).toBe(before);
});
