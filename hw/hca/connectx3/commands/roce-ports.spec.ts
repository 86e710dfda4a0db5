/** Ports of Ethernet with RoCE, as commands set them up. */
import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import {
  SetPortEthernet,
  setPortGeneral,
  setPortGidTable,
  setPortRoceAddresses,
} from '../../../../abi/ports-ethernet.ts';
import { ServiceType } from '../../../../abi/qpc.ts';
import { queryDevCap } from '../../../../abi/query-dev-cap.ts';
import { configDev } from '../../../../abi/static-configuration.ts';
import { broughtUp, createCq, createEq, firstQpn, initMailbox, must } from '../../testing/bring-up.ts';
import type { ControlBench } from '../../testing/control-bench.ts';

const { OK, BAD_OP, BAD_PARAM } = CommandStatus;
type Versions = 'none' | 'v1' | 'v2';
const deviceWith = (roce: Versions): ControlBench => broughtUp({}, { linkLayer: 'ethernet', roce });
const portOf = (bench: ControlBench) => bench.control.ports[0]!;
const setPort = (bench: ControlBench, subCommand: number, inBox: Uint8Array): number =>
  bench.command('SET_PORT', { inBox, inputModifier: (subCommand << 8) | 1, opcodeModifier: 1 }).status;
const gidOf = (last: number): Uint8Array => {
  const gid = new Uint8Array(16);
  gid.set([0xfe, 0x80]);
  gid[15] = last;
  return gid;
};
const noGid = new Uint8Array(16);
const gids = [gidOf(1), noGid, gidOf(2)];
const addresses = gids.map((gid, index) => ({ gid, version: index === 2 ? 2 : 0, type: 1 }));
const gidAt = (bench: ControlBench, index: number): Uint8Array =>
  portOf(bench).gids.slice(index * 16, index * 16 + 16);

describe('QUERY_DEV_CAP of ports of Ethernet', () => {
  const flagsOf = (roce: Versions) => {
    const report = queryDevCap.decode(must(deviceWith(roce), 'QUERY_DEV_CAP', { outBytes: 0x100 }).outBox);
    const has = (bit: number): boolean => ((report.capabilityFlags >> BigInt(bit)) & 1n) === 1n;
    const routable = ((report.memoryManagementFlags >>> 19) & 1) === 1;
    const { reservedXrcDomains, logMaxXrcDomains } = report;
    const domains = has(3) ? 2 ** logMaxXrcDomains - reservedXrcDomains : 0;
    return { roce: has(30), rc: has(0), domains, multicast: has(21), udpRss: has(40), routable };
  };

  it.each([
    ['none', { roce: false, rc: false, domains: 0, multicast: false, routable: false }],
    ['v1', { roce: true, rc: true, domains: 65_534, multicast: true, routable: false }],
    ['v2', { roce: true, rc: true, domains: 65_534, multicast: true, routable: true }],
  ] as const)('sheet 3.7: says of RoCE %s what there is, beside the rings', (roce, flags) => {
    expect(flagsOf(roce)).toEqual({ ...flags, udpRss: true });
  });
});

describe('SET_PORT with RoCE', () => {
  it('sheet 7.4: begins without any GID, and takes a table of those of v1', () => {
    const bench = deviceWith('v1');
    expect(gidAt(bench, 0)).toEqual(noGid);
    expect(setPort(bench, SetPortEthernet.GID_TABLE, setPortGidTable.encode({ gids }))).toBe(OK);
    expect([0, 1, 2].map((index) => gidAt(bench, index))).toEqual(gids);
    bench.control.reset(bench.domain.cycle);
    expect(gidAt(bench, 0)).toEqual(noGid);
  });

  it('sheet 7.4: takes GIDs with their versions where there are two', () => {
    const bench = deviceWith('v2');
    const inBox = setPortRoceAddresses.encode({ entries: addresses });
    expect(setPort(bench, SetPortEthernet.ROCE_ADDR, inBox)).toBe(OK);
    expect([0, 1, 2].map((index) => gidAt(bench, index))).toEqual(gids);
    expect([...portOf(bench).roce!.isRoutable.slice(0, 4)]).toEqual([0, 0, 1, 0]);
    expect(setPort(deviceWith('v1'), SetPortEthernet.ROCE_ADDR, inBox)).toBe(BAD_OP);
    expect(setPort(deviceWith('none'), SetPortEthernet.ROCE_ADDR, inBox)).toBe(BAD_OP);
  });

  it('sheet 3.12: has both versions on where there are two, and can be asked for nothing else', () => {
    const general = (roce: Versions, roceMode: number): number =>
      setPort(
        deviceWith(roce),
        SetPortEthernet.GENERAL,
        setPortGeneral.encode({ roceModeValid: 1, roceMode }),
      );
    expect([general('v2', 2), general('v2', 1), general('v1', 2), general('none', 2)]).toEqual([
      OK,
      BAD_PARAM,
      BAD_PARAM,
      BAD_PARAM,
    ]);
  });
});

describe('CONFIG_DEV', () => {
  const configure = (bench: ControlBench, fields: object, opcodeModifier = 0): number =>
    bench.command('CONFIG_DEV', { inBox: configDev.encode(fields), opcodeModifier }).status;

  it('sheet 3.19: sets the UDP port of RoCE v2, until the device is reset', () => {
    const bench = deviceWith('v2');
    const udpPort = (): number | undefined => portOf(bench).roce!.udpPort;
    expect(udpPort()).toBe(4791);
    expect(configure(bench, { updateRocePort: 1, roceUdpPort: 5000 })).toBe(OK);
    expect(udpPort()).toBe(5000);
    expect(configure(bench, { roceUdpPort: 6000 })).toBe(OK);
    expect(udpPort()).toBe(5000);
    bench.control.reset(bench.domain.cycle);
    expect(udpPort()).toBe(4791);
  });

  it('sheet 3.19: answers with the UDP port, where received checksums make it answer', () => {
    const bench = broughtUp({}, { linkLayer: 'ethernet', roce: 'v2', receiveChecksums: 'complete' });
    expect(configure(bench, { updateRocePort: 1, roceUdpPort: 5000 })).toBe(OK);
    const { outBox } = must(bench, 'CONFIG_DEV', { opcodeModifier: 1, outBytes: configDev.sizeBytes });
    expect(configDev.decode(outBox)).toMatchObject({ roceUdpPort: 5000, rxChecksumModePort1: 1 });
  });

  it('sheet 3.19: refuses what is not offered, and is not there without RoCE v2', () => {
    expect(configure(deviceWith('v2'), { updateVxlanPort: 1 })).toBe(BAD_PARAM);
    expect(configure(deviceWith('v2'), { updateRxPortCheck: 1 })).toBe(BAD_PARAM);
    expect(configure(deviceWith('v2'), {}, 1)).toBe(BAD_OP);
    for (const roce of ['none', 'v1'] as const) expect(configure(deviceWith(roce), {})).toBe(BAD_OP);
  });
});

describe('queue pairs of a port with RoCE', () => {
  it('sheet 5.1: are rings and connections, each with its own limits', () => {
    const bench = deviceWith('v1');
    const cqn = createCq(bench, 1, createEq(bench, 0));
    const create = (index: number, fields: object): number =>
      bench.command('RST2INIT_QP', {
        inBox: initMailbox(cqn, fields),
        inputModifier: firstQpn + index,
      }).status;
    expect(create(0, { serviceType: ServiceType.MLX, pathMtu: 7, logMaxMessage: 31 })).toBe(OK);
    for (const [index, serviceType] of [
      ServiceType.RC,
      ServiceType.UC,
      ServiceType.UD,
      ServiceType.MLX,
    ].entries())
      expect(create(1 + index, { serviceType, pathMtu: 3, logMaxMessage: 11 })).toBe(OK);
    expect(create(5, { serviceType: ServiceType.RC, pathMtu: 3, logMaxMessage: 31 })).toBe(BAD_PARAM);
  });
});
