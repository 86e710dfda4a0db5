import { describe, expect, it } from 'vitest';
import { bar0 } from '../../../abi/bar-map.ts';
import { CommandStatus } from '../../../abi/command-status.ts';
import { commandEqe, EventType } from '../../../abi/eqe.ts';
import { hcrGoOffset } from '../../../abi/hcr.ts';
import { viewOf } from '../../../base/index.ts';
import { broughtUp, bufferAddress, createEq, must } from '../testing/bring-up.ts';
import { ControlBench, latencyCycles } from '../testing/control-bench.ts';

const goBit = 1 << 23;
const goDword = bar0.registers.hcr.offset + hcrGoOffset;

/** The first cycle at which software would read GO as 0. */
function cyclesUntilFree(bench: ControlBench): number {
  for (let cycle = 1; cycle < 100_000; cycle++) {
    bench.run(1);
    if ((bench.read32(goDword) & goBit) === 0) return cycle;
  }
  return -1;
}

/** A device with EQ 4 taking command completions. */
function withEvents(): ControlBench {
  const bench = broughtUp();
  const eqn = createEq(bench, 0);
  must(bench, 'MAP_EQ', { inParam: 2 ** EventType.CMD, inputModifier: eqn });
  return bench;
}

const eqeAt = (bench: ControlBench, index: number): DataView =>
  viewOf(bench.memory.read(bufferAddress(0) + index * 32, 32));

describe('the command processor', () => {
  it('takes decoding, the cycles of its class, the mailbox write and one cycle to complete', () => {
    const bench = new ControlBench({ commandDecodeCycles: 100, queryCycles: 300 });
    bench.post('QUERY_FW', { outBytes: 256 });
    // Posted at 0: latched at 1, decoded at 101, worked until 401, write leaves after 10, resumed a cycle later.
    expect(cyclesUntilFree(bench)).toBe(1 + 100 + 300 + latencyCycles + 1 + 1);
    expect(bench.control.processor.account.busyCycles).toBe(100 + 300 + 1);
    // Waiting for the write: from 401 until the completion at 412.
    expect([...bench.control.processor.account.stalledCycles]).toEqual([0, latencyCycles + 1, 0, 0]);
  });

  it('has all of a command in host memory before software can see it complete', () => {
    const bench = new ControlBench();
    bench.post('QUERY_FW', { outBytes: 256 });
    while ((bench.read32(goDword) & goBit) !== 0) bench.run(1);
    expect(bench.memory.read(bench.outBoxAddress + 0x0a, 2)).toEqual(new Uint8Array([0, 3]));
  });

  it('sheet 3.2: refuses an unknown opcode without a DMA', () => {
    const bench = new ControlBench();
    for (const opcode of [0x000, 0x002, 0x047, 0x056, 0x203, 0xf00, 0x7ff]) {
      expect(bench.command(opcode).status).toBe(CommandStatus.BAD_OP);
    }
    expect(bench.dma.writeLog).toEqual([]);
  });

  it('answers a mailbox that the host does not have with an internal error', () => {
    const bench = new ControlBench();
    bench.memory.limit = 0x100_0000;
    expect(bench.command('MAP_FA', { inParam: 0x200_0000, inputModifier: 1 }).status).toBe(
      CommandStatus.INTERNAL_ERR,
    );
    expect(bench.icm.firmwarePageCount).toBe(0);
  });

  it('sheet 3.1: refuses a mailbox that is not aligned', () => {
    const bench = new ControlBench();
    bench.outBoxAddress += 64;
    expect(bench.command('QUERY_FW', { outBytes: 256 }).status).toBe(CommandStatus.BAD_PARAM);
    expect(bench.command('MAP_FA', { inParam: 0x200_0010, inputModifier: 1 }).status).toBe(
      CommandStatus.BAD_PARAM,
    );
  });

  it('sheet 2.2: completes by event with token, status and immediate, and frees the register when it has latched', () => {
    const bench = withEvents();
    bench.post('NOP', { byEvent: true, token: 0x1234, inputModifier: 0x1f });
    expect(cyclesUntilFree(bench)).toBeLessThanOrEqual(2); // posted between two edges, latched at the second
    bench.run();
    const eqe = eqeAt(bench, 0);
    expect(commandEqe.fields.type.get(eqe, 0)).toBe(EventType.CMD);
    expect(commandEqe.fields.token.get(eqe, 0)).toBe(0x1234);
    expect(commandEqe.fields.status.get(eqe, 0)).toBe(CommandStatus.OK);
    expect(commandEqe.fields.owner.get(eqe, 0)).toBe(0);
    expect(bench.interrupts.messages.length).toBe(1);
  });

  it('sheet 2.2: reports a failure by event too', () => {
    const bench = withEvents();
    bench.post(0x123, { byEvent: true, token: 7 });
    bench.run();
    expect(commandEqe.fields.status.get(eqeAt(bench, 0), 0)).toBe(CommandStatus.BAD_OP);
  });

  it('sheet 2.2: lets one command wait in the register, with GO set, while another runs', () => {
    const bench = withEvents();
    bench.post('QUERY_HCA', { byEvent: true, token: 1, outBytes: 512 });
    bench.run(2);
    expect(bench.read32(goDword) & goBit).toBe(0);
    bench.post('NOP', { byEvent: true, token: 2 });
    bench.run(2);
    expect(bench.read32(goDword) & goBit).toBe(goBit);
    bench.run();
    expect([0, 1].map((index) => commandEqe.fields.token.get(eqeAt(bench, index), 0))).toEqual([1, 2]);
    expect(bench.read32(goDword) & goBit).toBe(0);
  });

  it('writes the mailbox before the event that announces it', () => {
    const bench = withEvents();
    const before = bench.dma.writeLog.length;
    bench.post('QUERY_HCA', { byEvent: true, token: 1, outBytes: 512 });
    bench.run();
    expect(bench.dma.writeLog.slice(before).map(({ requester }) => requester)).toEqual(['command', 'eqe']);
  });

  it('drops the completion of a command by event when no EQ takes it', () => {
    const bench = broughtUp();
    bench.post('NOP', { byEvent: true, token: 1 });
    bench.run();
    expect(bench.control.violations.report()).toEqual({ eventUnmapped: 1 });
    expect(bench.control.processor.isIdle).toBe(true);
  });

  it('accounts every cycle as busy, stalled or idle', () => {
    const bench = withEvents();
    bench.post('QUERY_HCA', { byEvent: true, token: 1, outBytes: 512 });
    // One more command arrives while the first is being decoded: it waits, and does not hurry the first.
    bench.run(2);
    bench.post('NOP', { byEvent: true, token: 2 });
    bench.run(5000);
    const { account } = bench.control.processor;
    const { cycle } = bench;
    account.close(cycle);
    const stalled = account.stalledCycles.reduce((sum, cycles) => sum + cycles, 0);
    expect(account.busyCycles + stalled + account.idleCycles).toBe(cycle);
    expect(account.overlapCount).toBe(0);
  });
});
