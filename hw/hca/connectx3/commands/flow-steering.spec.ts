/** Rules of flow steering as software writes them, and the QP that they choose for a frame. */
import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { flowEthernet, flowIpv4, flowPorts, flowRule } from '../../../../abi/flow-rules.ts';
import { initHca } from '../../../../abi/init-hca.ts';
import { queryDevCap } from '../../../../abi/query-dev-cap.ts';
import { fromHex } from '../../../../base/bytes.ts';
import { broughtUp, donateIcm, must, profile, startFirmware } from '../../testing/bring-up.ts';
import { ControlBench } from '../../testing/control-bench.ts';

const { OK, BAD_OP, BAD_PARAM, BAD_INDEX, EXCEED_LIM } = CommandStatus;
const managed = (): ControlBench => {
  const bench = new ControlBench({}, { linkLayer: 'ethernet' });
  startFirmware(bench);
  donateIcm(bench);
  const rules = { deviceManagedSteering: 1, logFlowSteeringEntryBytes: 8, logFlowSteeringEntries: 4 };
  const groups = { mcgBase: 0n, logMcgEntryBytes: 0, logMcgHashEntries: 0, logMcgEntries: 0 };
  must(bench, 'INIT_HCA', { inBox: initHca.encode({ ...profile, ...groups, ...rules }) });
  return bench;
};

const joined = (...parts: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => [...part]));
const ones = new Uint8Array(6).fill(0xff);
const MAC = fromHex('0002c9000001');
const toMac = (mac: Uint8Array, more: object = {}): Uint8Array =>
  flowEthernet.encode({ sizeDwords: 12, id: 0xe001, destinationMac: mac, destinationMacMask: ones, ...more });
const rule = (qpn: number, records: readonly Uint8Array[], more: object = {}): Uint8Array =>
  joined(flowRule.encode({ priority: 0x1000, port: 1, qpn, ...more }), ...records);
const attach = (bench: ControlBench, inBox: Uint8Array, inputModifier = inBox.length / 4) =>
  bench.command('FLOW_ATTACH', { inBox, inputModifier });

/** Returns a frame of destination, source, type and `rest`, padded to 60 bytes. */
const frameOf = (destination: Uint8Array, type = '0800', rest = ''): Uint8Array => {
  const frame = new Uint8Array(60);
  frame.set(destination);
  frame.set(fromHex('0002c9000009'), 6);
  frame.set(fromHex(type + rest), 12);
  return frame;
};
/** IPv4 of this protocol, from 10.0.0.9 to 10.0.0.1, source port 5, destination port 7. */
const packet = (protocol: string): string => `450000280000000040${protocol}00000a0000090a00000100050007`;
const chosen = (bench: ControlBench, frame: Uint8Array, vlanId = -1): number =>
  bench.control.ports[0]!.ethernet!.steering.qpnOf(frame, 0, frame.length + 4, vlanId);

describe('flow steering', () => {
  it('sheet 3.7: is offered by ports of Ethernet, with members of an entry that Linux finds a size for', () => {
    const report = queryDevCap.decode(must(managed(), 'QUERY_DEV_CAP', { outBytes: 0x100 }).outBox);
    expect(report).toMatchObject({ flowSteering: 1, maxQpsPerSteeringEntry: 56 });
  });

  it('sheet 3.18: gives a frame to the QP of the rule that fits, and drops what none does', () => {
    const bench = managed();
    expect(chosen(bench, frameOf(MAC))).toBe(-1);
    expect(attach(bench, rule(0x50, [toMac(MAC)])).status).toBe(OK);
    expect(chosen(bench, frameOf(MAC))).toBe(0x50);
    expect(chosen(bench, frameOf(fromHex('0002c9000002')))).toBe(-1);
    expect(chosen(bench, frameOf(fromHex('ffffffffffff')))).toBe(-1);
    expect(bench.control.ports[0]!.ethernet!.steering.drops).toMatchObject({ portClosed: 0 });
  });

  it('sheet 3.18: tries rules by priority, those of one in their order, and a last one first', () => {
    const bench = managed();
    attach(bench, rule(0x50, [toMac(MAC)], { priority: 0x5000 }));
    attach(bench, rule(0x51, [toMac(MAC)]));
    attach(bench, rule(0x52, [toMac(MAC)]));
    expect(chosen(bench, frameOf(MAC))).toBe(0x51);
    attach(bench, rule(0x53, [toMac(MAC)], { isLast: 1 }));
    expect(chosen(bench, frameOf(MAC))).toBe(0x53);
  });

  it('sheet 3.18: compares ethertype, VLAN, IPv4 addresses and ports under their masks', () => {
    const bench = managed();
    const ipv4 = flowIpv4.encode({
      sizeDwords: 6,
      id: 0xe002,
      destination: 0x0a000001,
      destinationMask: 0xffffffff,
    });
    const udp = flowPorts.encode({
      sizeDwords: 6,
      id: 0xe006,
      destinationPort: 7,
      destinationPortMask: 0xffff,
    });
    attach(bench, rule(0x60, [toMac(MAC), ipv4, udp]));
    attach(bench, rule(0x61, [toMac(MAC, { etherTypeEnabled: 1, etherType: 0x88b5 })]));
    attach(bench, rule(0x62, [toMac(MAC, { vlan: 7, vlanMask: 0xfff })]));
    bench.control.ports[0]!.ethernet!.steering.vlanFilter[7] = 1;
    expect(chosen(bench, frameOf(MAC, '0800', packet('11')))).toBe(0x60);
    expect(chosen(bench, frameOf(MAC, '0800', packet('06')))).toBe(-1);
    expect(chosen(bench, frameOf(MAC, '88b5'))).toBe(0x61);
    expect(chosen(bench, frameOf(MAC, '8100', '00070800'), 7)).toBe(0x62);
    expect(chosen(bench, frameOf(MAC, '8100', '00080800'), 8)).toBe(-1);
  });

  it('sheet 3.18: gives what no rule takes to the QP of groups, and all else to that of promiscuity', () => {
    const bench = managed();
    attach(bench, rule(0x50, [toMac(MAC)]));
    attach(bench, rule(0x71, [], { type: 3 }));
    expect(chosen(bench, frameOf(fromHex('01005e000001')))).toBe(0x71);
    expect(chosen(bench, frameOf(fromHex('0002c9000002')))).toBe(-1);
    attach(bench, rule(0x70, [], { type: 1 }));
    expect(chosen(bench, frameOf(fromHex('0002c9000002')))).toBe(0x70);
    expect(chosen(bench, frameOf(fromHex('01005e000001')))).toBe(0x71);
    expect(chosen(bench, frameOf(MAC))).toBe(0x50);
  });

  it('sheet 3.18: takes as many rules as the table has entries, and one more for each that is removed', () => {
    const bench = managed();
    const another = () => attach(bench, rule(0x50, [toMac(MAC)]));
    const rules = Array.from({ length: 2 ** 4 }, another);
    expect(rules.map(({ status }) => status)).toEqual(rules.map(() => OK));
    expect(another().status).toBe(EXCEED_LIM);
    expect(bench.command('FLOW_DETACH', { inParam: rules[0]!.out }).status).toBe(OK);
    expect(another().status).toBe(OK);
    expect(another().status).toBe(EXCEED_LIM);
  });

  it('DPDK mlx4_flow.c: takes default rules with an Ethernet record that asks for nothing as those without', () => {
    const bench = managed();
    const nothing = flowEthernet.encode({ sizeDwords: flowEthernet.sizeBytes / 4, id: 0xe001 });
    attach(bench, rule(0x70, [nothing], { type: 1 }));
    attach(bench, rule(0x71, [nothing], { type: 3 }));
    expect(chosen(bench, frameOf(fromHex('0002c9000002')))).toBe(0x70);
    expect(chosen(bench, frameOf(fromHex('01005e000001')))).toBe(0x71);
  });

  it('sheet 3.18: takes a rule back by its number, once', () => {
    const bench = managed();
    const { out } = attach(bench, rule(0x50, [toMac(MAC)]));
    const detach = (id: number) => bench.command('FLOW_DETACH', { inParam: id }).status;
    expect(detach(out + 1)).toBe(BAD_INDEX);
    expect(detach(out)).toBe(OK);
    expect(chosen(bench, frameOf(MAC))).toBe(-1);
    expect(detach(out)).toBe(BAD_INDEX);
  });

  it('sheet 3.18: refuses what is no rule, and every rule where tables choose', () => {
    const bench = managed();
    const wrong: [string, Uint8Array, number?][] = [
      ['no record of a regular rule', rule(1, [])],
      ['a type of sniffers', rule(1, [toMac(MAC)], { type: 6 })],
      ['a port that is not there', rule(1, [toMac(MAC)], { port: 3 })],
      ['a record of InfiniBand', rule(1, [joined(fromHex('0c00e005'), new Uint8Array(44))])],
      ['a record of another size', rule(1, [toMac(MAC, { sizeDwords: 11 })])],
      ['a record that is cut off', rule(1, [toMac(MAC)]), 10],
      ['no head', rule(1, []), 3],
      ['more than a record of each layer', rule(1, [toMac(MAC), toMac(MAC), toMac(MAC)])],
    ];
    for (const [name, inBox, size] of wrong) expect(attach(bench, inBox, size).status, name).toBe(BAD_PARAM);
    const plain = broughtUp({}, { linkLayer: 'ethernet' });
    expect(attach(plain, rule(1, [toMac(MAC)])).status).toBe(BAD_OP);
    expect(bench.command('READ_MCG', { inputModifier: 0, outBytes: 0x100 }).status).toBe(BAD_OP);
  });
});
