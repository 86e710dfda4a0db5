import { describe, expect, it } from 'vitest';
import { bar0 } from '../../../../abi/bar-map.ts';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { hcr, hcrGoOffset } from '../../../../abi/hcr.ts';
import { violation } from '../../statistics/protocol-violations.ts';
import { ControlBench } from '../../testing/control-bench.ts';

const goBit = 1 << 23;
const toggleBit = 1 << 21;
const hcrOffset = bar0.registers.hcr.offset;

describe('the command register', () => {
  it('sheet 2.2: reads zero after reset, so that Linux, whose toggle starts at 1, finds it free', () => {
    const bench = new ControlBench();
    const dword = bench.read32(hcrOffset + hcrGoOffset);
    expect(dword & goBit).toBe(0);
    expect((dword & toggleBit) !== 0).toBe(false); // Linux: busy when T equals its own toggle, 1
  });

  it('sheet 2.2: is free for Linux after each command: GO is 0 and T is not the toggle of the next', () => {
    const bench = new ControlBench();
    for (let command = 0; command < 5; command++) {
      bench.command('QUERY_FW', { outBytes: 256 });
      const dword = bench.read32(hcrOffset + hcrGoOffset);
      const isBusyForLinux = (dword & goBit) !== 0 || ((dword & toggleBit) !== 0) === (bench.toggle === 1);
      expect(isBusyForLinux).toBe(false);
    }
  });

  it('sheet 2.2: is free for iPXE, whose copy starts at 0 and follows what it posted', () => {
    const bench = new ControlBench();
    let copy = 0;
    for (let command = 0; command < 5; command++) {
      const dword = bench.read32(hcrOffset + hcrGoOffset);
      expect((dword & goBit) === 0 && ((dword & toggleBit) !== 0) === (copy === 1)).toBe(true);
      copy = 1 - copy; // iPXE inverts, then posts
      bench.toggle = copy;
      expect(bench.command('QUERY_FW', { outBytes: 256 }).status).toBe(CommandStatus.OK);
    }
  });

  it('sheet 2.2: reads GO as 1 while a polled command runs, and keeps opcode and toggle when it has ended', () => {
    const bench = new ControlBench();
    bench.post('QUERY_FW', { outBytes: 256 });
    expect(bench.read32(hcrOffset + hcrGoOffset) & goBit).toBe(goBit);
    bench.run();
    // Opcode 0x004, T = 1 (bit 21), status 0.
    expect(bench.read32(hcrOffset + hcrGoOffset)).toBe(0x0020_0004);
  });

  it('sheet 2.2: puts the status in the top byte', () => {
    const bench = new ControlBench();
    expect(bench.command(0x123).status).toBe(CommandStatus.BAD_OP);
    expect(bench.read32(hcrOffset + hcrGoOffset)).toBe(0x0220_0123);
  });

  it('ignores and counts writes while it is busy', () => {
    const bench = new ControlBench();
    bench.post('QUERY_FW', { outBytes: 256 });
    bench.write32(hcrOffset, 0xdead_beef); // in_param, high half
    bench.write32(hcrOffset + hcrGoOffset, 0x0080_0031);
    bench.run();
    expect(bench.control.violations.of(violation.commandWhileBusy)).toBe(2);
    expect(bench.read32(hcrOffset)).toBe(0);
    expect(bench.control.processor.completedByOpcode).toEqual(new Map([[4, 1]]));
  });

  it('sheet 2.2: starts nothing when dword 6 is written without GO', () => {
    const bench = new ControlBench();
    bench.write32(hcrOffset + hcrGoOffset, 0x0000_0004);
    bench.run();
    expect(bench.control.processor.completedByOpcode.size).toBe(0);
  });

  it('sheet 2.2: returns an immediate in dwords 3 and 4', () => {
    const bench = new ControlBench();
    bench.post('QUERY_FW', { outBytes: 256 });
    bench.run();
    // A box command leaves out_param as posted.
    const at = hcrOffset + hcr.fields.outParam.wordOffset;
    expect([bench.read32(at), bench.read32(at + 4)]).toEqual([0, bench.outBoxAddress]);
  });
});
