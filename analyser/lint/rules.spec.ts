import { describe, expect, it } from 'vitest';
import {
  cqc,
  cqe,
  mpt,
  QpState,
  qpcOffsetInMailbox,
  qpMailbox,
  rssContext,
  rssOffsetInQpc,
  ServiceType,
  srqc,
} from '../../abi/index.ts';
import { viewOf } from '../../base/bytes.ts';
import { TrafficClass } from '../../hw/dma/index.ts';
import { AnalyserBench, bar0Address, bar2Address, mapBox } from '../testing/bench.ts';
import { type RuleName, rules } from './rules.ts';

const up = (): AnalyserBench => {
  const bench = new AnalyserBench();
  bench.bringUp();
  return bench;
};

const withQp = (service?: number): AnalyserBench => {
  const bench = up();
  bench.createCq();
  bench.readyQp(0x40, service);
  return bench;
};

/** A WRITE of 32 bytes: control, remote address, data; the bytes are literal. */
const write = (owner = 0): Uint8Array => {
  const wqe = new Uint8Array(48);
  const view = viewOf(wqe);
  view.setUint32(0, (owner << 31) | 0x08);
  view.setUint32(4, 3);
  view.setUint32(8, 0x0c);
  view.setUint32(0x10 + 8, 0x1234_5600);
  view.setUint32(0x20, 32);
  return wqe;
};

const withBits = (bytes: Uint8Array, offset: number, bits: number): Uint8Array => {
  bytes[offset] = bytes[offset]! | bits;
  return bytes;
};

const fetchWqe = (bench: AnalyserBench, block: number, wqe: Uint8Array): void => {
  bench.put(bench.wqeAddress(block), wqe);
  bench.deviceReads(bench.wqeAddress(block), 64, TrafficClass.wqeRead);
};

const blueFlame = (bench: AnalyserBench, bytes: Uint8Array): void => {
  for (let at = 0; at < 64; at += 8)
    bench.store(bar2Address + 0x40_0000 + 8 * 4096 + at, bytes.slice(at, at + 8));
};

/** Drivers that break each rule, with the object that the finding names. */
const cases: Readonly<Record<RuleName, (bench: AnalyserBench) => AnalyserBench>> = {
  'hcr-access': (bench) => {
    bench.store(bar0Address + 0x80680, new Uint8Array(8));
    return bench;
  },
  'hcr-reserved': (bench) => {
    bench.command('NOP', { registers: { token: 0xffff } });
    bench.store32(bar0Address + 0x80694, 0xffff_0001);
    bench.store32(bar0Address + 0x80698, 0x0080_0031);
    return bench;
  },
  'command-busy': (bench) => {
    bench.command('NOP', { isLeftUnanswered: true });
    bench.command('NOP');
    return bench;
  },
  'command-toggle': (bench) => {
    bench.command('NOP');
    bench.toggle ^= 1;
    bench.command('NOP');
    return bench;
  },
  'command-token': (bench) => {
    bench.command('NOP', { registers: { event: 1, token: 5 } });
    bench.command('NOP', { registers: { event: 1, token: 5 } });
    return bench;
  },
  'command-opcode': (bench) => {
    bench.command('NOP', { registers: { opcode: 0x7ff } });
    return bench;
  },
  'command-modifier': (bench) => {
    bench.command('SYNC_TPT', { inputModifier: 1 });
    return bench;
  },
  'command-mailbox': (bench) => {
    bench.command('SW2HW_MPT', { inputModifier: 0x20, inParam: 0x10_0010 });
    return bench;
  },
  'mailbox-reserved': (bench) => {
    // CQC dword 00 has no field at [16].
    const box = withBits(cqc.encode({ uarPage: 8, mttAddress: 8, doorbellRecordAddress: 0x72_0000n }), 1, 1);
    bench.mtt(1, 0x71_0000);
    bench.command('SW2HW_CQ', { inputModifier: 0x21, box });
    return bench;
  },
  'command-phase': (bench) => {
    bench.command('HW2SW_EQ', { inputModifier: 4, opcodeModifier: 1 });
    bench.command('CLOSE_HCA');
    bench.command('SW2HW_MPT', { inputModifier: 0x20, box: mpt.encode({}) });
    return bench;
  },
  'command-index': (bench) => {
    bench.createMpt(0x100);
    return bench;
  },
  'command-state': (bench) => {
    bench.command('INIT2RTR_QP', { inputModifier: 0x41, box: qpMailbox.encode({}) });
    return bench;
  },
  'memory-outside': (bench) => {
    bench.createCq(0x20, { doorbellRecordAddress: 0x4000_0000n });
    return bench;
  },
  'dma-outside': (bench) => {
    bench.analyser.refused('writeOutsideMemory', 0x4000_0000, 64, TrafficClass.payloadWrite, bench.nowPs);
    return bench;
  },
  'icm-mapped-twice': (bench) => {
    bench.command('MAP_ICM', { inputModifier: 1, box: mapBox(0x1000, 0x80_0000, 0) });
    return bench;
  },
  'icm-unmap-unmapped': (bench) => {
    bench.command('UNMAP_ICM', { inputModifier: 64, inParam: 0x80_0000_0000 });
    return bench;
  },
  'icm-unmap-in-use': (bench) => {
    bench.createMpt();
    bench.command('UNMAP_ICM', { inputModifier: 64, inParam: 0xc_0000 });
    return bench;
  },
  'icm-not-mapped': (bench) => {
    bench.command('UNMAP_ICM', { inputModifier: 1, inParam: 0xc_0000 });
    bench.createMpt();
    return bench;
  },
  'pages-unmap-in-use': (bench) => {
    bench.command('UNMAP_ICM_AUX');
    return bench;
  },
  'context-changed': (bench) => {
    const address = bench.entry('qpcBase', 0x40, 256);
    bench.deviceWrites(address, new Uint8Array(256).fill(7), TrafficClass.context);
    bench.put(address + 9, Uint8Array.of(8));
    bench.deviceReads(address, 256, TrafficClass.context);
    return bench;
  },
  'mpt-changed': (bench) => {
    bench.createMpt();
    const address = bench.entry('dmptBase', 0x20, 64);
    bench.deviceWrites(address, mpt.encode({ isRegion: 1 }), TrafficClass.command);
    bench.put(address, mpt.encode({ isRegion: 1, remoteWriteEnabled: 1 }));
    bench.deviceReads(address, 64, TrafficClass.translation);
    return bench;
  },
  'mtt-not-present': (bench) => {
    bench.createCq(0x20, { mttAddress: 0x800 });
    return bench;
  },
  'doorbell-unknown-qp': (bench) => {
    bench.sendDoorbell(0x77);
    return bench;
  },
  'doorbell-qp-state': (bench) => {
    bench.createCq();
    bench.initQp();
    bench.put(bench.wqeAddress(0), write());
    bench.sendDoorbell();
    return bench;
  },
  'doorbell-foreign-uar': () => {
    const bench = withQp();
    bench.put(bench.wqeAddress(0), write());
    bench.sendDoorbell(0x40, 9);
    return bench;
  },
  'doorbell-offset': (bench) => {
    bench.store32(bar2Address + 8 * 4096 + 0x18, 0);
    return bench;
  },
  'doorbell-reserved': () => {
    const bench = withQp();
    bench.put(bench.wqeAddress(0), write());
    bench.store32(bar2Address + 8 * 4096 + 0x14, 0x4001);
    return bench;
  },
  'doorbell-without-work': () => {
    const bench = withQp();
    bench.put(bench.wqeAddress(0), write(1));
    bench.sendDoorbell();
    return bench;
  },
  'blueflame-differs': () => {
    const bench = withQp();
    const wqe = new Uint8Array(64);
    wqe.set(write());
    viewOf(wqe).setUint32(4, (0x40 << 8) | 3);
    bench.put(bench.wqeAddress(0), wqe);
    blueFlame(bench, withBits(wqe.slice(), 0x2f, 1));
    return bench;
  },
  'wqe-opcode': () => {
    const bench = withQp(ServiceType.UC);
    const read = write();
    read[3] = 0x10;
    fetchWqe(bench, 0, read);
    return bench;
  },
  'wqe-size': () => {
    const bench = withQp();
    const short = write();
    short[7] = 1;
    fetchWqe(bench, 0, short);
    return bench;
  },
  'wqe-reserved': () => {
    const bench = withQp();
    // The remote address segment ends with a reserved dword.
    fetchWqe(bench, 0, withBits(write(), 0x1f, 1));
    return bench;
  },
  'cq-arm-unknown': (bench) => {
    bench.armCq(0x1200_0033);
    return bench;
  },
  'cq-arm-sequence': (bench) => {
    bench.createCq();
    bench.armCq(0x0200_0020);
    return bench;
  },
  'cq-consumer-ahead': (bench) => {
    bench.createCq();
    bench.deviceWrites(0x71_0000, cqe.encode({ qpn: 0x40, isSend: 1, opcode: 8 }), TrafficClass.cqe);
    bench.put(0x72_0000, Uint8Array.of(0, 0, 0, 2));
    bench.readsRecord(0x72_0000, 4);
    return bench;
  },
  'eq-doorbell-unknown': (bench) => {
    bench.store32(bar2Address + 2 * 4096 + 0x800, 0x8000_0000);
    return bench;
  },
  'eq-consumer-ahead': (bench) => {
    bench.store32(bar2Address + 1 * 4096 + 0x800, 0x8000_0001);
    return bench;
  },
  'receive-overrun': (bench) => {
    bench.createSrq();
    bench.put(0x72_0010, Uint8Array.of(0, 0, 0, 17));
    bench.readsRecord(0x72_0010, 4);
    return bench;
  },
  'use-after-destroy': () => {
    const bench = withQp();
    bench.put(bench.wqeAddress(0), write());
    bench.command('2RST_QP', { inputModifier: 0x40, opcodeModifier: 2 });
    bench.sendDoorbell();
    return bench;
  },
  'left-at-close': (bench) => {
    bench.createMpt();
    bench.command('HW2SW_EQ', { inputModifier: 4, opcodeModifier: 1 });
    bench.command('CLOSE_HCA');
    return bench;
  },
  'left-at-release': (bench) => {
    bench.command('HW2SW_EQ', { inputModifier: 4, opcodeModifier: 1 });
    bench.command('CLOSE_HCA');
    bench.store32(bar0Address + 0x8069c, 0);
    return bench;
  },
  'left-at-reset': (bench) => {
    bench.store32(bar0Address + 0xf0010, 1);
    return bench;
  },
};

describe('the linter', () => {
  it.each(Object.keys(rules) as RuleName[])('reports a driver that breaks: %s', (rule) => {
    const { findings } = cases[rule](up()).analyser;
    const found = findings.filter((finding) => finding.rule === rule);
    expect(findings.map((finding) => `${finding.rule}: ${finding.text}`)).toContain(
      `${rule}: ${found[0]?.text}`,
    );
    expect(found[0]?.access).not.toBe('');
    // The linter reports no other rule.
    expect([...new Set(findings.map((finding) => finding.rule))]).toEqual([rule]);
  });

  it('reports a rule once for each object, with the number of violations', () => {
    const bench = up();
    for (let times = 0; times < 3; times++) bench.sendDoorbell(0x77);
    bench.sendDoorbell(0x78);
    expect(bench.analyser.findings.map(({ object, count }) => [object, count])).toEqual([
      ['QP 0x77', 3],
      ['QP 0x78', 1],
    ]);
  });

  it('treats the doorbell that invalidates translations as such in UAR 0 only (abi/bar-map.ts)', () => {
    const bench = up();
    bench.store32(bar2Address + 0x840, 0);
    expect(bench.analyser.findings).toEqual([]);
    bench.store32(bar2Address + 8 * 4096 + 0x840, 0);
    expect(bench.analyser.findings.map(({ rule }) => rule)).toEqual(['doorbell-offset']);
  });

  it('reports nothing about a driver that keeps the rules, from bring-up to removal', () => {
    const bench = withQp();
    bench.createSrq();
    bench.createMpt();
    for (let block = 0; block < 40; block++) {
      const owner = (block >> 4) & 1;
      bench.put(bench.wqeAddress(block & 15), write(owner));
      bench.sendDoorbell();
      bench.deviceReads(bench.wqeAddress(block & 15), 64, TrafficClass.wqeRead);
    }
    bench.armCq(0x1200_0020);
    bench.command('2RST_QP', { inputModifier: 0x40, opcodeModifier: 2 });
    bench.command('HW2SW_SRQ', { inputModifier: 0x20, opcodeModifier: 1 });
    bench.command('HW2SW_CQ', { inputModifier: 0x20, opcodeModifier: 1 });
    bench.command('HW2SW_MPT', { inputModifier: 0x20, opcodeModifier: 1 });
    bench.command('MAP_EQ', { inputModifier: 0x8000_0004, inParam: 0x400 });
    bench.command('HW2SW_EQ', { inputModifier: 4, opcodeModifier: 1 });
    bench.command('CLOSE_HCA');
    bench.command('UNMAP_ICM', { inputModifier: 0x200, inParam: 0 });
    for (let type = 0; type < 4; type++)
      bench.command('UNMAP_ICM', { inputModifier: 64, inParam: 0x1000_0000 + type * 2 ** 30 });
    bench.command('UNMAP_ICM_AUX');
    bench.command('UNMAP_FA');
    bench.store32(bar0Address + 0x8069c, 0);
    expect(bench.analyser.findings).toEqual([]);
  });

  it('sheet 5.1, 6.3: accepts the Ethernet rings of mlx4_en', () => {
    const bench = up();
    bench.command('CONF_SPECIAL_QP', { inputModifier: 0x80 });
    bench.createCq();
    const nowhere = { doorbellRecordAddress: 0xffa9_4100n };
    // It represents a table that overlaps its paths, and has no queues: here its buffer would be the CQ's.
    const ring = {
      serviceType: ServiceType.MLX,
      uarPage: 8,
      sqLogStride16: 2,
      sendCqn: 0x20,
      receiveCqn: 0x20,
    };
    const context = { ...ring, ...nowhere, state: QpState.INIT, isRssIndirection: 1, mttAddress: 8 };
    const box = qpMailbox.encode({ context });
    const table = { logTableSize: 1, baseQpn: 0x50, defaultQpn: 0x50, hashFunction: 1, flags: 0x3c };
    box.set(rssContext.encode({ ...table, baseQpnUdp: 0x50 }), qpcOffsetInMailbox + rssOffsetInQpc);
    bench.command('RST2INIT_QP', { inputModifier: 0x48, box });
    bench.deviceWrites(0x71_0000, cqe.encode({ qpn: 0x50, opcode: 1 }), TrafficClass.cqe);
    bench.armCq(0x1200_0020, 1);
    // A send-only ring has no receive queue, and has its number in its BlueFlame posts.
    bench.initQp(0x49, ServiceType.MLX, { ...nowhere, rqLogCount: 0 });
    const frame = new Uint8Array(32);
    frame.set([0, 0, 0, 0x0a, 0, 0, 0x09, 2, 0, 0, 0, 0x0c], 0);
    fetchWqe(bench, 0, frame);
    expect(bench.analyser.findings).toEqual([]);
    // The device reads the rest of a WQE separately; it might be mistaken for a WQE of the next pass.
    const long = new Uint8Array(128);
    long.set([0, 0, 0, 0x0a, 0, 0, 0x09, 5, 0, 0, 0, 0x0c], 0);
    long.set([0x80, 0, 0, 0x18], 64);
    bench.put(bench.wqeAddress(1), long);
    for (const block of [1, 2]) bench.deviceReads(bench.wqeAddress(block), 64, TrafficClass.wqeRead);
    expect(bench.analyser.findings).toEqual([]);
    fetchWqe(bench, 3, withBits(frame.slice(), 7, 0x80));
    expect(bench.broken).toEqual(['wqe-reserved']);
  });

  it('accepts a post that arrives after its WQE was completed and stamped', () => {
    const stamped = (bench: AnalyserBench): void => {
      bench.put(bench.wqeAddress(0), write());
      bench.sendDoorbell();
      bench.put(bench.wqeAddress(1), write());
      bench.deviceReads(bench.wqeAddress(0), 128, TrafficClass.wqeRead);
      bench.put(bench.wqeAddress(1), Uint8Array.of(0xff, 0xff, 0xff, 0xff));
    };
    const rung = withQp();
    stamped(rung);
    rung.sendDoorbell();
    expect(rung.analyser.findings).toEqual([]);
    rung.sendDoorbell();
    expect(rung.broken).toEqual(['doorbell-without-work']);
    const posted = withQp();
    stamped(posted);
    const wqe = new Uint8Array(64);
    wqe.set(write());
    viewOf(wqe).setUint32(0, 0x0000_0108);
    viewOf(wqe).setUint32(4, (0x40 << 8) | 3);
    blueFlame(posted, wqe);
    expect(posted.analyser.findings).toEqual([]);
  });

  it('treats a doorbell of an object that a reset destroyed as late, not wrong', () => {
    const bench = withQp();
    bench.store32(bar0Address + 0xf0010, 1);
    bench.toggle = 1;
    bench.bringUp();
    bench.sendDoorbell();
    bench.armCq(0x1200_0020);
    const late = bench.analyser.findings.filter(
      ({ text }) => text === 'is rung, but was destroyed by the reset',
    );
    expect(late.map(({ rule, object }) => [rule, object])).toEqual([
      ['left-at-reset', 'QP 0x40'],
      ['left-at-reset', 'CQ 0x20'],
    ]);
    expect(new Set(bench.broken)).toEqual(new Set(['left-at-reset']));
    bench.sendDoorbell(0x77);
    expect(bench.broken).toContain('doorbell-unknown-qp');
    // An object that was created again is alive.
    bench.createCq();
    bench.readyQp();
    bench.put(bench.wqeAddress(0), write());
    const before = bench.broken.length;
    bench.sendDoorbell();
    bench.armCq(0x1200_0020);
    expect(bench.broken).toHaveLength(before);
  });

  it('sheet 6.3: accepts the MAC in a send of RoCE’s QP1', () => {
    const bench = up();
    bench.command('CONF_SPECIAL_QP', { inputModifier: 0x80 });
    bench.createCq();
    bench.initQp(0x82, ServiceType.MLX);
    const wqe = new Uint8Array(16);
    wqe.set([0, 0, 0, 0x0a, 0, 0, 0, 1, 0x02, 0x1b, 0, 0x0c, 0xc9, 0x12, 0x34, 0x11]);
    fetchWqe(bench, 0, wqe);
    expect(bench.analyser.findings).toEqual([]);
    fetchWqe(bench, 1, withBits(wqe.slice(), 11, 0x20));
    expect(bench.broken).toEqual(['wqe-reserved']);
  });

  it('sheet 5.1, 5.5: checks that XRC domains of SRQs and targets exist, and that the CQ of an SRQ is alive', () => {
    const beyond = up();
    beyond.createSrq(0x20, { xrcDomain: 16 });
    expect(beyond.broken).toEqual(['command-index']);
    const bench = up();
    bench.createCq();
    // Linux' numbers, independent of the firmware's own objects.
    bench.createSrq(0x30, { xrcDomain: 0 });
    bench.createSrq(0x31, { xrcDomain: 1, cqn: 0x20 });
    bench.createSrq(0x20, { xrcDomain: 15, cqn: 0x20 });
    bench.initQp(0x40, ServiceType.XRC);
    expect(bench.broken).toEqual([]);
    for (const srqn of [0x20, 0x31]) bench.command('HW2SW_SRQ', { inputModifier: srqn, opcodeModifier: 1 });
    bench.command('HW2SW_CQ', { inputModifier: 0x20, opcodeModifier: 1 });
    bench.createSrq(0x21, { xrcDomain: 15, cqn: 0x20 });
    expect(bench.broken).toEqual(['use-after-destroy']);
    const targets = up();
    targets.createCq();
    targets.initQp(0x40, ServiceType.XRC, { xrcDomain: 16 });
    expect(targets.broken).toEqual(['command-index']);
  });

  it('lets a driver edit a region between HW2SW_MPT and SYNC_TPT', () => {
    const bench = up();
    bench.createMpt();
    const address = bench.entry('dmptBase', 0x20, 64);
    const valid = { isRegion: 1, isPhysical: 1, keyIndexForm: 0x20 };
    bench.deviceWrites(address, mpt.encode(valid), TrafficClass.command);
    bench.command('HW2SW_MPT', { inputModifier: 0x20, opcodeModifier: 1 });
    bench.put(address, mpt.encode({ ...valid, remoteWriteEnabled: 1 }));
    bench.command('SYNC_TPT');
    bench.deviceReads(address, 64, TrafficClass.translation);
    bench.command('HW2SW_MPT', { inputModifier: 0x20, opcodeModifier: 1 });
    expect(bench.analyser.findings).toEqual([]);
  });

  it('treats an arm that races with an event as late, not wrong', () => {
    const bench = up();
    bench.createCq();
    const completionEvent = new Uint8Array(32);
    completionEvent[7] = 0x20;
    bench.armCq(0x1200_0020);
    bench.deviceWrites(0x70_0000, completionEvent, TrafficClass.eqe);
    bench.armCq(0x1200_0020);
    expect(bench.broken).toEqual([]);
    bench.armCq(0x3200_0020);
    expect(bench.broken).toEqual(['cq-arm-sequence']);
  });

  it('creates no object for a failed command', () => {
    const bench = up();
    const context = { srqn: 0x20, logWqes: 4, logStride16: 1, mttAddress: 0, xrcDomain: 2 };
    const box = srqc.encode({ ...context, doorbellRecordAddress: 0x72_0010n });
    bench.command('SW2HW_SRQ', { inputModifier: 0x20, box, status: 0x08 });
    bench.command('HW2SW_SRQ', { inputModifier: 0x20, opcodeModifier: 1 });
    expect(bench.broken).toEqual(['command-state']);
  });
});
