import { describe, expect, it } from 'vitest';
import { bar0 } from '../../../../abi/bar-map.ts';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { violation } from '../../statistics/protocol-violations.ts';
import { broughtUp, createEq } from '../../testing/bring-up.ts';
import { ControlBench } from '../../testing/control-bench.ts';
import { firmwareReport } from '../commands/device-capabilities.ts';

const at = {
  owner: bar0.registers.owner.offset,
  semaphore: bar0.registers.semaphore.offset,
  reset: bar0.registers.reset.offset,
  clock: bar0.registers.clock.offset,
  clearInterrupt: bar0.registers.clearInterrupt.offset,
  catastrophic: bar0.registers.catastrophicBuffer.offset,
  hcr: bar0.registers.hcr.offset,
};

describe('BAR0', () => {
  it('sheet 2.5: gives the owner register to its first reader, until a 0 is written', () => {
    const bench = new ControlBench();
    expect([bench.read32(at.owner), bench.read32(at.owner)]).toEqual([0, 1]);
    bench.write32(at.owner, 5);
    expect(bench.read32(at.owner)).toBe(1);
    bench.write32(at.owner, 0);
    expect(bench.read32(at.owner)).toBe(0);
  });

  it('sheet 2.3: gives the semaphore to its first reader, until any write', () => {
    const bench = new ControlBench();
    expect([bench.read32(at.semaphore), bench.read32(at.semaphore)]).toEqual([0, 1]);
    bench.write32(at.semaphore, 1);
    expect(bench.read32(at.semaphore)).toBe(0);
  });

  it.each([
    ['Linux', 0x0000_0001],
    ['iPXE', 0x0100_0001],
  ])('sheet 2.3: resets the whole device on the value that %s writes', (_driver, value) => {
    const bench = broughtUp();
    createEq(bench, 0);
    bench.read32(at.owner);
    bench.read32(at.semaphore);
    bench.write32(at.reset, value);
    expect(bench.resetCount).toBe(1);
    expect([bench.read32(at.owner), bench.read32(at.semaphore), bench.read32(at.hcr + 0x18)]).toEqual([
      0, 0, 0,
    ]);
    const { icm } = bench;
    const { eqs } = bench.control;
    expect([icm.mappedPageCount, icm.auxiliaryPageCount, icm.firmwarePageCount, eqs.liveCount]).toEqual([
      0, 0, 0, 0,
    ]);
    expect(bench.dataPath.calls).toContain('reset');
    bench.toggle = 1;
    expect(bench.command('QUERY_DEV_CAP', { outBytes: 256 }).status).toBe(CommandStatus.BAD_SYS_STATE);
  });

  it('sheet 2.3: does not reset on a value without bit 0', () => {
    const bench = new ControlBench();
    bench.write32(at.reset, 0x0100_0000); // The value that a driver writes if it forgets to swap.
    expect(bench.resetCount).toBe(0);
  });

  it('sheet 2.3: aborts a command under way when it is reset, and takes the next one', () => {
    const bench = new ControlBench();
    bench.post('QUERY_FW', { outBytes: 256 });
    bench.run(300);
    bench.write32(at.reset, 1);
    bench.run();
    expect(bench.memory.read(bench.outBoxAddress, 256)).toEqual(new Uint8Array(256));
    bench.toggle = 1;
    expect(bench.command('QUERY_FW', { outBytes: 256 }).outBox).toEqual(firmwareReport(bench.capabilities));
  });

  it('sheet 2.7: counts cycles of the core clock in the clock register, high dword first', () => {
    const bench = new ControlBench();
    const into = new DataView(new ArrayBuffer(8));
    bench.control.barRead(at.clock, 4, into, 5 * 2 ** 32 + 7);
    expect(into.getUint32(0)).toBe(5);
    bench.control.barRead(at.clock + 4, 4, into, 5 * 2 ** 32 + 7);
    expect(into.getUint32(0)).toBe(7);
  });

  it('mstflint tools_dev_types.c: names the chip at 0xf0014, a ConnectX-3 as 0x1f5', () => {
    const bench = new ControlBench();
    expect(bench.read32(0xf0014)).toBe(0x1f5);
    bench.write32(0xf0014, 0xffff_ffff);
    expect(bench.read32(0xf0014)).toBe(0x1f5);
  });

  it('sheet 2.6: keeps the catastrophic error buffer zero until an error is simulated', () => {
    const bench = new ControlBench();
    expect(bench.read32(at.catastrophic)).toBe(0);
    bench.commandSet.registers.setCatastrophicError(0x77);
    expect(bench.read32(at.catastrophic)).toBe(0x77);
    bench.write32(at.catastrophic, 0);
    expect(bench.read32(at.catastrophic)).toBe(0x77);
    expect(bench.control.violations.of(violation.registerReadOnlyWrite)).toBe(1);
  });

  it('sheet 2.4: deasserts the interrupt pin on bit 0 of the second clear-interrupt dword, pin 0', () => {
    const bench = new ControlBench();
    bench.interrupts.isPinAsserted = true;
    bench.write32(at.clearInterrupt, 1); // pin 32
    bench.write32(at.clearInterrupt + 4, 2); // pin 1
    expect(bench.interrupts.isPinAsserted).toBe(true);
    bench.write32(at.clearInterrupt + 4, 1);
    expect(bench.interrupts.isPinAsserted).toBe(false);
  });

  it('sheet 2.1: reads zero between registers and ignores writes there, without a complaint', () => {
    const bench = new ControlBench();
    bench.write32(0x4000, 0xffff_ffff);
    expect(bench.read32(0x4000)).toBe(0);
    expect(bench.control.violations.report()).toEqual({});
  });

  it.each([
    ['8 bytes', 0, 8],
    ['2 bytes', 0, 2],
    ['1 byte', 3, 1],
    ['a dword across two registers', 2, 4],
  ])('sheet 2.1: drops an access of %s to the HCR and counts it', (_what, offset, lengthBytes) => {
    const bench = new ControlBench();
    bench.control.barWrite(at.hcr + offset, new Uint8Array(8).fill(0xff), 0, lengthBytes, 0);
    const into = new DataView(new ArrayBuffer(8));
    into.setUint32(0, 0xffff_ffff);
    bench.control.barRead(at.hcr + offset, lengthBytes, into, 0);
    for (let byte = 0; byte < lengthBytes; byte++) expect(into.getUint8(byte)).toBe(0);
    expect(bench.read32(at.hcr)).toBe(0);
    expect(bench.control.violations.report()).toEqual({ registerAccessSize: 2 });
  });
});
