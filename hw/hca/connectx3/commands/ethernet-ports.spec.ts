import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { ethernetStatistics } from '../../../../abi/ethernet-statistics.ts';
import { initHca } from '../../../../abi/init-hca.ts';
import { PortType, queryPort, setPortInfiniband } from '../../../../abi/ports.ts';
import {
  MulticastMode,
  SetPortEthernet,
  setPortGeneral,
  setPortMacTable,
  setPortReceiveQps,
  setPortVlanTable,
  setVlanFilter,
} from '../../../../abi/ports-ethernet.ts';
import { QpState, qpc, rssContext, rssOffsetInQpc, ServiceType } from '../../../../abi/qpc.ts';
import { queryDevCap } from '../../../../abi/query-dev-cap.ts';
import { fromHex, toHex } from '../../../../base/bytes.ts';
import {
  broughtUp,
  createCq,
  createEq,
  donateIcm,
  firstQpn,
  initMailbox,
  must,
  profile,
  startFirmware,
} from '../../testing/bring-up.ts';
import { ControlBench } from '../../testing/control-bench.ts';

const { OK, BAD_OP, BAD_PARAM } = CommandStatus;
const ethernetDevice = (): ControlBench => broughtUp({}, { linkLayer: 'ethernet' });
const sideOf = (bench: ControlBench) => bench.control.ports[0]!.ethernet!;
/** SET_PORT's input modifier: sub-command and port 1. */
const about = (subCommand: number): number => (subCommand << 8) | 1;
const setPort = (bench: ControlBench, subCommand: number, inBox: Uint8Array): number =>
  bench.command('SET_PORT', { inBox, inputModifier: about(subCommand), opcodeModifier: 1 }).status;

const pass = (bench: ControlBench, mac: number, vlanId = -1, frameBytes = 64): number => {
  const header = fromHex(mac.toString(16).padStart(12, '0'));
  return sideOf(bench).steering.qpnOf(header, 0, frameBytes, vlanId);
};
const BROADCAST = 0xffff_ffff_ffff;
const OWN = 0x0002_c900_0001;
const GROUP = 0x0100_5e00_0001;

describe('an Ethernet port', () => {
  it('sheet 3.13: says so in QUERY_PORT and SENSE_PORT, with its MAC, its MTU and 40 Gb/s', () => {
    const bench = ethernetDevice();
    const port = queryPort.decode(must(bench, 'QUERY_PORT', { inputModifier: 1, outBytes: 0x100 }).outBox);
    expect(port).toMatchObject({
      supportedTypes: PortType.ETHERNET,
      maxEthernetMtu: 1500,
      ethernetSpeed: 0x40,
      mac: OWN,
      linkUp: 0,
      logMacs: 7,
      logVlans: 7,
    });
    expect(bench.command('SENSE_PORT', { inputModifier: 1 }).out).toBe(PortType.ETHERNET);
  });

  it('sheet 8.3: offers neither of the flags that would ask for steering by a table, no segmentation, and tables of rings', () => {
    const bench = ethernetDevice();
    const report = queryDevCap.decode(must(bench, 'QUERY_DEV_CAP', { outBytes: 0x100 }).outBox);
    expect([41, 42].map((bit) => (report.capabilityFlags >> BigInt(bit)) & 1n)).toEqual([0n, 0n]);
    expect(report).toMatchObject({ logMaxLsoBytes: 0, rssToeplitz: 1, rssXor: 1, logRssTable: 7 });
  });

  /** Bytes of QUERY_DEV_CAP: size of an LSO, flags 15 to 8 and 7 to 0, flags of memory management 31 to 24. */
  it.each([
    [{}, [0x00, 0x00, 0x00]],
    [{ logMaxLsoBytes: 16 }, [0x10, 0x80, 0x00]],
    [{ receiveChecksums: 'verified' }, [0x00, 0x00, 0x00]],
    [{ receiveChecksums: 'complete', logMaxLsoBytes: 17 }, [0x11, 0x80, 0x20]],
  ] as const)('sheet 3.7: reports as offloads with %o what Linux makes features of', (offloads, bytes) => {
    const bench = broughtUp({}, { linkLayer: 'ethernet', ...offloads });
    const { outBox } = must(bench, 'QUERY_DEV_CAP', { outBytes: 0x100 });
    expect([0x2d, 0x46, 0x94].map((place) => outBox[place])).toEqual(bytes);
  });

  it('sheet 3.7: reports none of them on a port of InfiniBand', () => {
    const report = (offloads: object): Uint8Array =>
      must(broughtUp({}, offloads), 'QUERY_DEV_CAP', { outBytes: 0x100 }).outBox;
    expect(report({ receiveChecksums: 'complete', logMaxLsoBytes: 17 })).toEqual(report({}));
  });

  it('sheet 3.19: answers by CONFIG_DEV that it gives the sums of all packets, if it does', () => {
    const query = (receiveChecksums: 'none' | 'verified' | 'complete') =>
      broughtUp({}, { linkLayer: 'ethernet', receiveChecksums }).command('CONFIG_DEV', {
        opcodeModifier: 1,
        outBytes: 0x84,
      });
    const { status, outBox } = query('complete');
    expect([status, toHex(outBox)]).toEqual([OK, `${'00'.repeat(0x83)}11`]);
    for (const form of ['none', 'verified'] as const) expect(query(form).status).toBe(BAD_OP);
  });

  it('sheet 3.11: is up as soon as its link is, without a subnet manager, and down with CLOSE_PORT', () => {
    const bench = ethernetDevice();
    bench.cable.set(true);
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.run(5000);
    const linkUp = (): number =>
      queryPort.decode(must(bench, 'QUERY_PORT', { inputModifier: 1, outBytes: 0x100 }).outBox).linkUp;
    expect([linkUp(), bench.control.ports[0]!.lid]).toEqual([1, 0]);
    must(bench, 'CLOSE_PORT', { inputModifier: 1 });
    expect(linkUp()).toBe(0);
  });
});

describe('SET_PORT on Ethernet', () => {
  const receiveQps = (fields = {}): Uint8Array =>
    setPortReceiveQps.encode({
      baseQpn: 0x100,
      promiscuousQpn: 0x100,
      multicastMode: MulticastMode.DEFAULT_QP,
      multicastQpn: 0x105,
      ...fields,
    });

  it('sheet 3.12: steers a frame to the base QPN plus the index of its MAC, and groups to the QP named for them', () => {
    const bench = ethernetDevice();
    const entries = [{}, {}, { valid: 1, mac: OWN }, { valid: 0, mac: GROUP }];
    expect(pass(bench, OWN)).toBe(-1);
    expect(setPort(bench, SetPortEthernet.MAC_TABLE, setPortMacTable.encode({ entries }))).toBe(OK);
    expect(setPort(bench, SetPortEthernet.RQP_CALC, receiveQps())).toBe(OK);
    expect([OWN, OWN + 1, BROADCAST, GROUP].map((mac) => pass(bench, mac))).toEqual([
      0x102, -1, 0x105, 0x105,
    ]);
  });

  it('sheet 3.12: gives a promiscuous port what nothing else takes', () => {
    const bench = ethernetDevice();
    expect(setPort(bench, SetPortEthernet.RQP_CALC, receiveQps({ promiscuous: 1 }))).toBe(OK);
    expect([pass(bench, OWN), pass(bench, OWN, 5)]).toEqual([0x100, 0x100]);
  });

  it('sheet 3.12: drops frames beyond the MTU that software set, which counts header and FCS', () => {
    const bench = ethernetDevice();
    expect(setPort(bench, SetPortEthernet.RQP_CALC, receiveQps())).toBe(OK);
    expect(
      setPort(bench, SetPortEthernet.GENERAL, setPortGeneral.encode({ mtuValid: 1, mtuBytes: 1522 })),
    ).toBe(OK);
    expect([1522, 1523].map((bytes) => pass(bench, BROADCAST, -1, bytes))).toEqual([0x105, -1]);
  });

  it('sheet 3.12: has the port send and heed PAUSE frames, each as its flag says, until it is reset', () => {
    const bench = ethernetDevice();
    const { flowControl } = bench.ethernet;
    // Flags of validity at 03, TX pause at 08, RX pause at 0c.
    const ask = (valid: number, tx: number, rx: number) => {
      const inBox = new Uint8Array(0x100);
      inBox.set([valid], 3);
      inBox.set([tx], 8);
      inBox.set([rx], 12);
      expect(setPort(bench, SetPortEthernet.GENERAL, inBox)).toBe(OK);
      return [flowControl.setting.sends, flowControl.setting.heeds];
    };
    expect(ask(0x01, 0x80, 0x80)).toEqual([false, false]);
    expect(ask(0x04, 0x80, 0x80)).toEqual([true, false]);
    expect(ask(0x02, 0, 0x80)).toEqual([true, true]);
    expect(ask(0x06, 0, 0x80)).toEqual([false, true]);
    expect(ask(0x06, 0x7f, 0x7f)).toEqual([false, false]);
    ask(0x06, 0x80, 0x80);
    bench.control.reset(bench.domain.cycle);
    expect(flowControl.setting).toEqual({ sends: false, heeds: false });
  });

  it('sheet 3.12: sets the priorities whose pauses the port sends and obeys, and a reset ends them', () => {
    const bench = ethernetDevice();
    const { priorities } = bench.ethernet.flowControl;
    const general = (parts: Parameters<typeof setPortGeneral.encode>[0]): number =>
      setPort(bench, SetPortEthernet.GENERAL, setPortGeneral.encode(parts));
    expect(general({ txPauseValid: 1, txPriorityPause: 0x18, rxPauseValid: 1, rxPriorityPause: 0x08 })).toBe(
      OK,
    );
    expect(priorities.setting).toEqual({ sends: 0x18, heeds: 0x08 });
    expect(general({ rxPauseValid: 1, rxPriorityPause: 0x80 })).toBe(OK);
    expect(priorities.setting).toEqual({ sends: 0x18, heeds: 0x80 });
    bench.control.reset(bench.domain.cycle);
    expect(priorities.setting).toEqual({ sends: 0, heeds: 0 });
  });

  it('sheet 3.12: takes it for a port that has no cable', () => {
    const bench = broughtUp({}, { linkLayer: 'ethernet', portCount: 2 });
    const inBox = setPortGeneral.encode({ txPauseValid: 1, txGlobalPause: 1 });
    const request = { inBox, inputModifier: (SetPortEthernet.GENERAL << 8) | 2, opcodeModifier: 1 };
    expect(bench.command('SET_PORT', request).status).toBe(OK);
    expect(bench.ethernet.flowControl.setting.sends).toBe(false);
  });

  it('sheet 3.12: keeps a VLAN table', () => {
    const bench = ethernetDevice();
    const entries = [{}, {}, { valid: 1, vlanId: 7 }];
    expect(setPort(bench, SetPortEthernet.VLAN_TABLE, setPortVlanTable.encode({ entries }))).toBe(OK);
    expect([...sideOf(bench).steering.vlans.slice(1, 4)]).toEqual([-1, 7, -1]);
  });

  it.each([
    [
      'more than the port carries as MTU',
      SetPortEthernet.GENERAL,
      setPortGeneral.encode({ mtuValid: 1, mtuBytes: 1527 }),
      BAD_PARAM,
    ],
    [
      'to ignore wrong frame check sequences',
      SetPortEthernet.GENERAL,
      setPortGeneral.encode({ ignoreFcsValid: 1 }),
      BAD_PARAM,
    ],
    [
      'groups by the table',
      SetPortEthernet.RQP_CALC,
      receiveQps({ multicastMode: MulticastMode.TABLE }),
      BAD_PARAM,
    ],
    ['GIDs, which RoCE would need', SetPortEthernet.GID_TABLE, new Uint8Array(0x800), BAD_OP],
    ['VXLAN', SetPortEthernet.VXLAN, new Uint8Array(8), BAD_OP],
  ] as const)('sheet 3.12: refuses %s', (_what, subCommand, inBox, status) => {
    expect(setPort(ethernetDevice(), subCommand, inBox)).toBe(status);
  });

  it('sheet 3.12: has no InfiniBand form, as a port of InfiniBand has no other', () => {
    const inBox = setPortInfiniband.encode({});
    expect(ethernetDevice().command('SET_PORT', { inBox, inputModifier: 1 }).status).toBe(BAD_OP);
    expect(setPort(broughtUp(), SetPortEthernet.RQP_CALC, receiveQps())).toBe(BAD_OP);
  });
});

describe('filters', () => {
  const opened = (): ControlBench => {
    const bench = ethernetDevice();
    const mode = MulticastMode.DEFAULT_QP;
    setPort(
      bench,
      SetPortEthernet.RQP_CALC,
      setPortReceiveQps.encode({ multicastMode: mode, multicastQpn: 9 }),
    );
    return bench;
  };

  it('sheet 3.18: SET_VLAN_FLTR counts its masks from the end', () => {
    const bench = opened();
    const masks = Array.from({ length: 128 }, () => 0);
    masks[127] = 1 << 7; // VID 7
    masks[0] = 1 << 30; // VID 127 × 32 + 30
    must(bench, 'SET_VLAN_FLTR', { inBox: setVlanFilter.encode({ masks }), inputModifier: 1 });
    const passing = [7, 8, 4094, 4093, -1, 0].map((vlanId) => pass(bench, BROADCAST, vlanId));
    expect(passing).toEqual([9, -1, 9, -1, 9, 9]);
  });

  it('sheet 3.18: SET_MCAST_FLTR lists groups, and is heeded while it is on', () => {
    const bench = opened();
    const filter = (opcodeModifier: number, inParam = 0): number =>
      bench.command('SET_MCAST_FLTR', { inParam, inputModifier: 1, opcodeModifier }).status;
    const passing = (): number[] => [BROADCAST, GROUP].map((mac) => pass(bench, mac));
    expect([filter(0, GROUP), filter(2)]).toEqual([OK, OK]);
    expect(passing()).toEqual([-1, 9]);
    expect([filter(1), passing()]).toEqual([OK, [9, 9]]);
    expect([filter(2), filter(3)]).toEqual([OK, BAD_OP]);
    const clears = 2 ** 63;
    expect([filter(0, clears), passing()]).toEqual([OK, [-1, -1]]);
  });

  it('sheet 3.2: are refused by a port that is not there', () => {
    const bench = ethernetDevice();
    for (const name of ['SET_VLAN_FLTR', 'SET_MCAST_FLTR', 'DUMP_ETH_STATS'] as const)
      expect(bench.command(name, { inputModifier: 2, inBox: new Uint8Array(0x200) }).status).toBe(BAD_PARAM);
  });
});

describe('QUERY_IF_STAT', () => {
  it('sheet 3.7, 3.19: reports a flow counter where QUERY_DEV_CAP has some, and begins it anew when asked', () => {
    const bench = broughtUp({}, { linkLayer: 'ethernet', flowCounters: 8 });
    const report = queryDevCap.decode(must(bench, 'QUERY_DEV_CAP', { outBytes: 0x100 }).outBox);
    expect([(report.capabilityFlags >> 48n) & 1n, report.flowCounters]).toEqual([1n, 8]);
    const counters = sideOf(bench).flowCounters!;
    counters.countReceived(3, 1000);
    counters.countTransmitted(3, 64);
    counters.countTransmitted(3, 66);
    const query = (inputModifier: number): string =>
      toHex(must(bench, 'QUERY_IF_STAT', { inputModifier: inputModifier >>> 0, outBytes: 0x30 }).outBox);
    const u64 = (value: number): string => value.toString(16).padStart(16, '0');
    const seen = `${'0'.repeat(32)}${u64(1)}${u64(1000)}${u64(2)}${u64(130)}`;
    expect(query(3)).toBe(seen);
    expect(query((1 << 31) | 3)).toBe(seen);
    expect([query(3), query(7)]).toEqual(['0'.repeat(96), '0'.repeat(96)]);
    const past = bench.command('QUERY_IF_STAT', { inputModifier: 8, outBytes: 0x30 });
    expect(past.status).toBe(CommandStatus.BAD_INDEX);
  });

  it('sheet 3.7: may be asked for by INIT_HCA where it is reported, as Linux does', () => {
    const statusOf = (capabilities: ConstructorParameters<typeof ControlBench>[1]): number => {
      const bench = new ControlBench({}, capabilities);
      startFirmware(bench);
      donateIcm(bench);
      return bench.command('INIT_HCA', { inBox: initHca.encode({ ...profile, counters: 1 }) }).status;
    };
    expect(statusOf({ linkLayer: 'ethernet', flowCounters: 8 })).toBe(OK);
    expect(statusOf({ linkLayer: 'ethernet' })).toBe(BAD_PARAM);
    expect(statusOf({ flowCounters: 8 })).toBe(BAD_PARAM);
  });

  it('sheet 3.7: is no command of a device without counters, nor with ports of InfiniBand', () => {
    for (const bench of [ethernetDevice(), broughtUp({}, { flowCounters: 8 })]) {
      expect(bench.command('QUERY_IF_STAT', { inputModifier: 0, outBytes: 0x30 }).status).toBe(BAD_OP);
      const report = queryDevCap.decode(must(bench, 'QUERY_DEV_CAP', { outBytes: 0x100 }).outBox);
      expect([(report.capabilityFlags >> 48n) & 1n, report.flowCounters]).toEqual([0n, 0]);
    }
  });
});

describe('DUMP_ETH_STATS', () => {
  const dump = (bench: ControlBench, inputModifier = 1) =>
    ethernetStatistics.decode(must(bench, 'DUMP_ETH_STATS', { inputModifier, outBytes: 0xbac }).outBox);

  it('sheet 3.19: counts frames by length with FCS, by destination and by priority, and begins anew when asked', () => {
    const bench = ethernetDevice();
    const { statistics } = sideOf(bench);
    const [unicast, group, all] = [OWN, GROUP, BROADCAST].map((mac) =>
      fromHex(mac.toString(16).padStart(12, '0')),
    );
    const untagged = -1;
    statistics.received.count(unicast!, 0, untagged, 64, 9000);
    statistics.received.count(group!, 0, (3 << 13) | 7, 1518, 9000);
    statistics.received.count(all!, 0, untagged, 1519, 1518);
    statistics.transmitted.count(unicast!, 0, untagged, 9000, 9018);
    bench.ethernet.errors.received.corruptedFrames = 2;
    const seen = dump(bench);
    expect(seen.receivedBySize.map(({ frames }) => frames.reduce((sum, count) => sum + count))).toEqual([
      1n,
      0n,
      0n,
      0n,
      0n,
      1n,
      0n,
      0n,
      0n,
      1n,
    ]);
    expect([
      seen.receivedOtherGood.frames[8],
      seen.receivedMulticast.frames[3],
      seen.receivedBroadcast.frames[8],
    ]).toEqual([1n, 1n, 1n]);
    expect(seen.receivedTotals[3]).toEqual({ frames: 1n, tagged: 1n });
    // Two untagged frames of 64 and 1519 bytes, each with 20 bytes of preamble and gap.
    expect(seen.receivedOctets[8]).toEqual({ withFraming: 1623n, withoutFraming: 1583n, good: 1583n });
    expect([seen.transmittedBySize[8]!.frames[8], seen.transmittedOctets[8]!.good]).toEqual([1n, 9000n]);
    expect([seen.crcErrors, seen.goodFrames]).toEqual([2, 3]);
    const clears = 1 << 8;
    expect(dump(bench, clears | 1).goodFrames).toBe(3);
    expect(dump(bench)).toMatchObject({ goodFrames: 0, crcErrors: 0 });
  });

  it('sheet 3.19: counts pauses in all priorities alike, times in microseconds, and begins anew by themselves', () => {
    const bench = ethernetDevice();
    const { counters } = bench.ethernet.flowControl;
    const pauses = 1 << 12;
    const words = (inputModifier: number): bigint[] => {
      const { outBox } = must(bench, 'DUMP_ETH_STATS', { inputModifier, outBytes: 0x200 });
      const view = new DataView(outBox.buffer, outBox.byteOffset);
      const records = Array.from({ length: 8 }, (_, priority) =>
        Array.from({ length: 8 }, (_none, word) => view.getBigUint64(priority * 0x40 + word * 8)),
      );
      for (const record of records) expect(record).toEqual(records[0]);
      return records[0]!;
    };
    Object.assign(counters, {
      receivedFrames: 9,
      receivedPauses: 7,
      receivedTransitions: 3,
      pausedPs: 5_999_999,
    });
    Object.assign(counters, { sentFrames: 4, sentTransitions: 2, stoppingPs: 8_000_000 });
    const seen = [7n, 5n, 3n, 4n, 8n, 2n, 0n, 0n];
    expect(words(pauses | 1)).toEqual(seen);
    const clears = 1 << 8;
    expect(dump(bench, clears | 1).receivedControl).toBe(9n);
    expect(dump(bench).receivedControl).toBe(0n);
    expect(words(pauses | clears | 1)).toEqual(seen);
    counters.receivedPauses++;
    counters.pausedPs += 2_000_001;
    expect(words(pauses | 1)).toEqual([1n, 2n, 0n, 0n, 0n, 0n, 0n, 0n]);
  });

  it('sheet 3.7.3: has those counters, and says so; a port of InfiniBand does neither', () => {
    const flagOf = (bench: ControlBench): number =>
      must(bench, 'QUERY_DEV_CAP', { outBytes: 0x100 }).outBox[0x70]! & 0x10;
    expect([flagOf(ethernetDevice()), flagOf(broughtUp())]).toEqual([0x10, 0]);
    expect(broughtUp().command('DUMP_ETH_STATS', { inputModifier: (1 << 12) | 1 }).status).toBe(BAD_OP);
  });
});

describe('queue pairs of an Ethernet port', () => {
  const context = (cqn: number, fields = {}): Uint8Array =>
    initMailbox(cqn, {
      serviceType: ServiceType.MLX,
      pathMtu: 7,
      logMaxMessage: 31,
      ...fields,
    });

  it('sheet 5.1: are rings, which Linux gives the largest MTU code and message; connections are refused', () => {
    const bench = ethernetDevice();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    expect(bench.command('RST2INIT_QP', { inBox: context(cqn), inputModifier: firstQpn }).status).toBe(OK);
    const connection = context(cqn, { serviceType: ServiceType.RC });
    expect(bench.command('RST2INIT_QP', { inBox: connection, inputModifier: firstQpn + 1 }).status).toBe(
      BAD_PARAM,
    );
  });

  it('sheet 5.1: may stand for a table of rings, which lies where others have paths', () => {
    const bench = ethernetDevice();
    const cqn = createCq(bench, 1, createEq(bench, 0));
    const inBox = context(cqn, { isRssIndirection: 1 });
    const key = Uint8Array.from({ length: 40 }, (_, at) => at + 1);
    rssContext.encodeInto(
      { logTableSize: 1, baseQpn: 0x200, hashFunction: 1, flags: 0x3c, key },
      inBox,
      8 + rssOffsetInQpc,
    );
    must(bench, 'RST2INIT_QP', { inBox, inputModifier: firstQpn });
    const { qps } = bench.tables;
    const at = qps.offsetOf(qps.slotOf(firstQpn));
    expect(qpc.fields.state.get(qps.view, at)).toBe(QpState.INIT);
    const table = rssContext.fields;
    expect(table.key.get(qps.view, at + rssOffsetInQpc)).toEqual(key);
    expect(table.baseQpn.get(qps.view, at + rssOffsetInQpc)).toBe(0x200);
    // mlx4_ib continues like this: the path of its next mailbox overlaps the table, and is zero.
    must(bench, 'INIT2RTR_QP', { inBox: context(cqn), inputModifier: firstQpn });
    expect(table.key.get(qps.view, at + rssOffsetInQpc)).toEqual(key);
    expect(table.baseQpn.get(qps.view, at + rssOffsetInQpc)).toBe(0x200);
    const tooLarge = inBox.slice();
    tooLarge[8 + rssOffsetInQpc] = 8;
    expect(bench.command('RST2INIT_QP', { inBox: tooLarge, inputModifier: firstQpn + 1 }).status).toBe(
      BAD_PARAM,
    );
  });
});
