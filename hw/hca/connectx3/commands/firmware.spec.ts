import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import type { CommandName } from '../../../../abi/commands.ts';
import { initHca } from '../../../../abi/init-hca.ts';
import { viewOf } from '../../../../base/index.ts';
import { broughtUp, createEq, donateIcm, must, profile, startFirmware } from '../../testing/bring-up.ts';
import { ControlBench } from '../../testing/control-bench.ts';

const { OK, BAD_SYS_STATE, BAD_PARAM, EXCEED_LIM, RESOURCE_BUSY, ICM_ERROR } = CommandStatus;

/** A device that has received firmware and auxiliary pages, nothing else. */
function withAuxiliary(): ControlBench {
  const bench = new ControlBench();
  startFirmware(bench);
  must(bench, 'SET_ICM_SIZE', { inParam: 2 ** 21 });
  must(bench, 'MAP_ICM_AUX', { inBox: bench.mapEntryBox(0, 0x1100_0000, 0), inputModifier: 1 });
  return bench;
}

describe('bring-up', () => {
  it('sheet 3.6: refuses every command but QUERY_FW and the firmware area before RUN_FW', () => {
    const bench = new ControlBench();
    const names: CommandName[] = [
      'QUERY_DEV_CAP',
      'MOD_STAT_CFG',
      'SET_ICM_SIZE',
      'INIT_HCA',
      'NOP',
      'SW2HW_EQ',
    ];
    for (const name of names) expect(bench.command(name, { outBytes: 256 }).status).toBe(BAD_SYS_STATE);
    expect(bench.command('QUERY_FW', { outBytes: 256 }).status).toBe(OK);
  });

  it('sheet 3.6: refuses RUN_FW until enough pages were given, in several commands if need be', () => {
    const bench = new ControlBench();
    const half = (address: number) => ({ inBox: bench.mapEntryBox(0, address, 5), inputModifier: 1 });
    must(bench, 'MAP_FA', half(0x1000_0000));
    expect(bench.command('RUN_FW').status).toBe(BAD_SYS_STATE);
    must(bench, 'MAP_FA', half(0x1002_0000));
    expect(bench.command('RUN_FW').status).toBe(OK);
    expect(bench.command('RUN_FW').status).toBe(BAD_SYS_STATE);
  });

  it('sheet 3.2: refuses objects, ports and MADs before INIT_HCA', () => {
    const bench = new ControlBench();
    startFirmware(bench);
    donateIcm(bench);
    const names: CommandName[] = [
      'SW2HW_EQ',
      'MAP_EQ',
      'SW2HW_CQ',
      'RST2INIT_QP',
      'SW2HW_MPT',
      'INIT_PORT',
      'MAD_IFC',
      'CLOSE_HCA',
    ];
    for (const name of names) expect(bench.command(name).status).toBe(BAD_SYS_STATE);
  });

  it('sheet 3.6: asks for one auxiliary page per 2 MiB of ICM, rounded up, at least one', () => {
    const bench = new ControlBench();
    startFirmware(bench);
    expect(must(bench, 'SET_ICM_SIZE', { inParam: 1 }).out).toBe(1);
    expect(must(bench, 'SET_ICM_SIZE', { inParam: 3 * 2 ** 21 + 1 }).out).toBe(4);
    expect(bench.command('SET_ICM_SIZE', { inParam: 0 }).status).toBe(BAD_PARAM);
    expect(bench.command('SET_ICM_SIZE', { inParam: 2 ** 40 + 4096 }).status).toBe(EXCEED_LIM);
  });

  it('sheet 4.2: maps ICM only after the auxiliary pages', () => {
    const bench = new ControlBench();
    startFirmware(bench);
    const map = { inBox: bench.mapEntryBox(0, 0x2000_0000, 0), inputModifier: 1 };
    expect(bench.command('MAP_ICM', map).status).toBe(BAD_SYS_STATE);
    must(bench, 'SET_ICM_SIZE', { inParam: 2 ** 22 });
    must(bench, 'MAP_ICM_AUX', { inBox: bench.mapEntryBox(0, 0x1100_0000, 0), inputModifier: 1 });
    expect(bench.command('MAP_ICM', map).status).toBe(BAD_SYS_STATE); // wants two pages, has one
    must(bench, 'MAP_ICM_AUX', { inBox: bench.mapEntryBox(0, 0x1100_1000, 0), inputModifier: 1 });
    expect(bench.command('MAP_ICM', map).status).toBe(OK);
  });

  it('maps all entries of a mailbox or none', () => {
    const bench = withAuxiliary();
    const { icm } = bench;
    const box = new Uint8Array(32);
    box.set(bench.mapEntryBox(0x1_0000, 0x2000_0000, 2), 0);
    box.set(bench.mapEntryBox(0x2_0000, 0x3000_0000, 0), 16);
    expect(bench.command('MAP_ICM', { inBox: box, inputModifier: 2 }).status).toBe(OK);
    expect(icm.mappedPageCount).toBe(5);
    expect(icm.physicalOf(0x1_3008)).toBe(0x2000_3008);
    // The second entry overlaps a mapped page: neither takes effect.
    box.set(bench.mapEntryBox(0x5_0000, 0x2100_0000, 0), 0);
    expect(bench.command('MAP_ICM', { inBox: box, inputModifier: 2 }).status).toBe(RESOURCE_BUSY);
    expect([icm.mappedPageCount, icm.physicalOf(0x5_0000)]).toEqual([5, -1]);
    // Two entries of one mailbox that overlap each other.
    box.set(bench.mapEntryBox(0x5_0000, 0x2100_0000, 0), 16);
    expect(bench.command('MAP_ICM', { inBox: box, inputModifier: 2 }).status).toBe(BAD_PARAM);
  });

  it.each([
    ['no entries', { inputModifier: 0 }, BAD_PARAM],
    ['more entries than a mailbox holds', { inputModifier: 257 }, BAD_PARAM],
  ])('sheet 3.6: refuses a MAP_ICM with %s', (_what, options, status) => {
    const bench = withAuxiliary();
    expect(bench.command('MAP_ICM', { inBox: new Uint8Array(4096), ...options }).status).toBe(status);
  });

  it('sheet 3.6: refuses a chunk that is not aligned to its size, or lies beyond the largest ICM', () => {
    const bench = withAuxiliary();
    const map = (icm: number, host: number) =>
      bench.command('MAP_ICM', { inBox: bench.mapEntryBox(icm, host, 2), inputModifier: 1 }).status;
    expect(map(0x1000, 0x2000_0000)).toBe(BAD_PARAM);
    expect(map(0x4000, 0x2000_1000)).toBe(BAD_PARAM);
    expect(map(2 ** 40, 0x2000_0000)).toBe(EXCEED_LIM);
    expect(map(0x4000, 0x2000_0000)).toBe(OK);
  });

  it('unmaps a chunk that was mapped in part, and refuses one that was not mapped at all', () => {
    const bench = withAuxiliary();
    must(bench, 'MAP_ICM', { inBox: bench.mapEntryBox(0, 0x2000_0000, 2), inputModifier: 1 });
    expect(bench.command('UNMAP_ICM', { inParam: 0, inputModifier: 64 }).status).toBe(OK);
    expect(bench.icm.mappedPageCount).toBe(0);
    expect(bench.command('UNMAP_ICM', { inParam: 0, inputModifier: 64 }).status).toBe(ICM_ERROR);
    expect(bench.command('UNMAP_ICM', { inParam: 8, inputModifier: 1 }).status).toBe(BAD_PARAM);
  });

  it('has the data path forget its translations when ICM is taken away', () => {
    const bench = broughtUp();
    must(bench, 'UNMAP_ICM', { inParam: 0, inputModifier: 64 });
    expect(bench.dataPath.calls).toEqual(['translationChanged', 'beginContextFence']);
  });

  it('keeps pages until the device has ended what it began with them', () => {
    const bench = broughtUp();
    bench.dataPath.isFenceOpen = false;
    bench.post('UNMAP_ICM', { inParam: 0, inputModifier: 64 });
    bench.run(200_000);
    expect(bench.control.processor.isIdle).toBe(false);
    bench.dataPath.isFenceOpen = true;
    bench.run();
    expect(bench.control.processor.isIdle).toBe(true);
  });

  it('sheet 3.10: forgets all contexts when the device is quiet, not before', () => {
    const bench = broughtUp();
    bench.dataPath.isFenceOpen = false;
    bench.post('CLOSE_HCA');
    bench.run(200_000);
    expect(bench.dataPath.calls).toEqual(['halt']);
    bench.dataPath.isFenceOpen = true;
    bench.run();
    expect(bench.dataPath.calls).toEqual(['halt', 'reset']);
  });

  it('initialises once, and again after CLOSE_HCA', () => {
    const bench = broughtUp();
    const init = { inBox: initHca.encode(profile) };
    expect(bench.command('INIT_HCA', init).status).toBe(BAD_SYS_STATE);
    createEq(bench, 0);
    must(bench, 'CLOSE_HCA');
    expect(bench.control.eqs.liveCount).toBe(0);
    expect(bench.dataPath.calls).toContain('reset');
    expect(bench.command('SW2HW_EQ').status).toBe(BAD_SYS_STATE);
    expect(bench.icm.mappedPageCount).toBe(6 * 64); // CLOSE_HCA leaves the mapping
    expect(bench.command('INIT_HCA', init).status).toBe(OK);
  });

  it.each([
    ['too many QPs', { logQps: 25 }],
    ['too many CQs', { logCqs: 25 }],
    ['too many SRQs', { logSrqs: 25 }],
    ['too many EQs', { logEqs: 10 }],
    ['too many MPTs', { logDmpts: 21 }],
    ['too many multicast entries', { logMcgEntries: 14 }],
    ['system EQs', { systemEqs: 4 }],
    ['64-byte CQEs', { cqe64: 1 }],
    ['64-byte EQEs', { eqe64: 1 }],
    ['larger UAR pages', { logUarPage4k: 1 }],
    ['more UARs than BAR2 has', { logUars: 11 }],
  ])('sheet 3.10: refuses a profile with %s', (_what, fields) => {
    const bench = new ControlBench();
    startFirmware(bench);
    donateIcm(bench);
    expect(bench.command('INIT_HCA', { inBox: initHca.encode({ ...profile, ...fields }) }).status).toBe(
      BAD_PARAM,
    );
    expect(bench.command('INIT_HCA', { inBox: initHca.encode(profile) }).status).toBe(OK);
  });

  it('sheet 3.10: returns by QUERY_HCA what INIT_HCA set, and the core clock', () => {
    const bench = broughtUp();
    const answer = initHca.decode(must(bench, 'QUERY_HCA', { outBytes: 512 }).outBox);
    expect(answer).toEqual({ ...initHca.decode(initHca.encode(profile)), coreClockMhz: 427 });
  });

  it('sheet 8.4: gives everything back in the order of removal', () => {
    const bench = broughtUp();
    expect(bench.command('UNMAP_FA').status).toBe(BAD_SYS_STATE);
    expect(bench.command('UNMAP_ICM_AUX').status).toBe(BAD_SYS_STATE);
    must(bench, 'CLOSE_HCA');
    must(bench, 'UNMAP_ICM_AUX');
    must(bench, 'UNMAP_FA');
    const { icm } = bench;
    expect([icm.auxiliaryPageCount, icm.firmwarePageCount]).toEqual([0, 0]);
    expect(bench.command('QUERY_DEV_CAP', { outBytes: 256 }).status).toBe(BAD_SYS_STATE);
  });
});

describe('the queries', () => {
  it('sheet 3.7: report bits 7 to 15 of static rates, 2.5 to 120 Gb/s, or none if the card does not keep them', () => {
    const ratesOf = (staticRates: boolean): number => {
      const { outBox } = must(broughtUp({}, { staticRates }), 'QUERY_DEV_CAP', { outBytes: 0x100 });
      return viewOf(outBox).getUint16(0x3c);
    };
    expect([ratesOf(true), ratesOf(false)]).toEqual([0xff80, 0]);
  });

  it('sheet 3.5: answer QUERY_FW with the bytes that the sheet suggests', () => {
    const { outBox } = new ControlBench().command('QUERY_FW', { outBytes: 256 });
    const view = viewOf(outBox);
    expect(view.getUint16(0x00)).toBe(64); // firmware pages
    expect([view.getUint16(0x02), view.getUint16(0x06), view.getUint16(0x04)]).toEqual([2, 42, 5000]);
    expect(view.getUint16(0x0a)).toBe(3); // command interface revision
    expect(view.getUint32(0x24)).toBe(0xf00d8); // clear-interrupt register
    expect([view.getUint32(0x34), view.getUint32(0x38)]).toEqual([0x1f800, 16]); // error buffer
    expect(view.getUint32(0x54)).toBe(0x8a000); // clock
  });

  it('sheet 3.7: answer QUERY_DEV_CAP with what this machine does, each at its offset', () => {
    const bench = new ControlBench();
    startFirmware(bench);
    const view = viewOf(must(bench, 'QUERY_DEV_CAP', { outBytes: 256 }).outBox);
    expect(view.getUint32(0x44)).toBe(0x0025_034f); // flags 0, 1, 2, 3, 6, 8, 9, 16, 18, 21
    expect(view.getUint32(0x40)).toBe(0x0800_0000); // flag 59
    expect(view.getUint16(0x66)).toBe(0x2010); // 2 XRC domains reserved of 2^16
    expect(view.getUint32(0x94)).toBe(0xec2); // flags 1, 6, 7, 9, 10, 11
    expect(view.getUint32(0x98)).toBe(0xff00); // the reserved key: of the last reserved entry, and not 0x100
    expect(view.getUint8(0x12)).toBe(6); // reserved QPs
    expect(view.getUint8(0x14)).toBe(0x60); // reserved SRQs
    expect(view.getUint8(0x37)).toBe(1); // one port
    expect([view.getUint8(0x49), view.getUint8(0x4c), view.getUint8(0x4d), view.getUint8(0x4e)]).toEqual([
      2, 0x80, 9, 3,
    ]);
    expect([view.getUint16(0x82), view.getUint16(0x90), view.getUint16(0x92)]).toEqual([256, 8, 64]);
    expect(view.getUint32(0xa0)).toBe(0x100); // 2^40 bytes of ICM
  });

  it('sheet 3.9: answer QUERY_ADAPTER with a board id in reversed groups', () => {
    const bench = new ControlBench();
    startFirmware(bench);
    const { outBox } = must(bench, 'QUERY_ADAPTER', { outBytes: 256 });
    expect(new TextDecoder().decode(outBox.subarray(0xf0, 0xf8))).toBe('_ACHLUME'); // "HCA_EMUL"
  });
});
