/** The commands by which a port of Ethernet with RoCE comes up, and what QPs on it say, byte for byte by the interface sheet. */
import { describe, expect, it } from 'vitest';
import { MemoryManagementFlag } from '../abi/capability-flags.ts';
import { PortType, queryPort } from '../abi/ports.ts';
import { qpMailbox, RoceMode } from '../abi/qpc.ts';
import { queryDevCap } from '../abi/query-dev-cap.ts';
import { fromHex, toHex } from '../base/bytes.ts';
import type { Script } from './testing.ts';
import { goldenDevice } from './testing-answers.ts';
import { initMask, rtrMask, rtsMask, TestContext, toInit, toRtr, toRts } from './testing-context.ts';

const mac = 0x0002_c912_3456;
const peerMac = 0x0002_c965_4321;
const neighbours = [
  { address: '10.0.0.1', portGuid: 1n, mac },
  { address: '10.0.0.2', portGuid: 2n, mac: peerMac },
];
const local = 'fe800000000000000202c9fffe123456';
const own = '00000000000000000000ffff0a000001';
const peer = '00000000000000000000ffff0a000002';

/** The captured device with its port of Ethernet, up, at 40 Gb/s with frames of 4200 bytes, and RoCE v2 if it has that. */
const ethernetDevice =
  (hasVersion2: boolean): Script =>
  (command) => {
    const answer = goldenDevice(command);
    if (command.name === 'QUERY_PORT') {
      const port = {
        linkUp: 1,
        supportedTypes: PortType.ETHERNET,
        maxEthernetMtu: 4200,
        ethernetSpeed: 0x40,
        logGids: 7,
        logPkeys: 7,
        mac,
      };
      return { output: queryPort.encode(port) };
    }
    if (command.name !== 'QUERY_DEV_CAP') return answer;
    const limits = queryDevCap.decode(answer!.output!);
    const flag = 2 ** MemoryManagementFlag.ROCE_V1_V2;
    const others = limits.memoryManagementFlags & ~flag;
    const memoryManagementFlags = (hasVersion2 ? others | flag : others) >>> 0;
    return { output: queryDevCap.encode({ ...limits, ports: 1, memoryManagementFlags }) };
  };

const connection = (hasVersion2: boolean) => ({
  ...toRtr,
  ahAttr: {
    dlid: 0,
    sl: 3,
    isGlobal: 1,
    portNum: 1,
    grh: { dgid: fromHex(peer), flowLabel: 5, sgidIndex: hasVersion2 ? 3 : 1, hopLimit: 9, trafficClass: 6 },
  },
});

describe.each([false, true])('a port of Ethernet on a device with version 2: %s', (hasVersion2) => {
  const open = () => TestContext.openWith(ethernetDevice(hasVersion2), neighbours);

  it('sheet 8.3: is given MTU and MAC, opened, and given its GIDs', async () => {
    const { machine } = await open();
    const names = ['SET_PORT', 'INIT_PORT', 'CONFIG_DEV'];
    const seen = machine.commands.filter(({ name }) => names.includes(name));
    expect(seen.map((command) => [command.name, command.inputModifier, command.opcodeModifier])).toEqual([
      ['SET_PORT', 0x001, 1],
      ['SET_PORT', 0x201, 1],
      ['INIT_PORT', 1, 0],
      ...(hasVersion2 ? [['CONFIG_DEV', 0, 0]] : []),
      ['SET_PORT', hasVersion2 ? 0xd01 : 0x501, 1],
    ]);
    const [general, macs] = seen;
    // Flags: MTU and pause; with both versions bit 4, and mode 2. 4200 and 26 are 0x1082; pause either way.
    expect(toHex(general!.input.subarray(2, 13))).toBe(
      hasVersion2 ? '0017200010828000000080' : '0007000010828000000080',
    );
    expect(toHex(macs!.input.subarray(0, 16))).toBe('80000002c91234560000000000000000');
    const gids = toHex(seen.at(-1)!.input);
    if (!hasVersion2) return expect(gids.slice(0, 96)).toBe(`${local}${own}${'0'.repeat(32)}`);
    // At 1a the type, 0 for IPv4 and 1 for IPv6; at 1b the version, 0 and 2.
    const entry = (gid: string, type: number, version: number): string =>
      `${gid}${'00'.repeat(10)}0${type}0${version}${'00'.repeat(4)}`;
    const entries = [entry(local, 1, 0), entry(local, 1, 2), entry(own, 0, 0), entry(own, 0, 2)];
    expect(gids.slice(0, 256)).toBe(entries.join(''));
    // The bit of the port of RoCE v2, and 4791.
    const configured = toHex(seen.find(({ name }) => name === 'CONFIG_DEV')!.input);
    expect([configured.slice(0, 8), configured.slice(2 * 0x16, 2 * 0x18)]).toEqual(['00000008', '12b7']);
  });

  it('sheet 5.1.1: has a connection go to the MAC of its peer, from its own by index, with priority and version', async () => {
    const opened = await open();
    const { machine, context } = opened;
    expect(await context.queryPort(machine.cpu, 1)).toMatchObject({
      activeMtu: 5,
      activeWidth: 2,
      activeSpeed: 4,
      linkLayer: 2,
    });
    const { handle, qpn } = await opened.createQp();
    await context.modifyQp(machine.cpu, handle, toInit, initMask);
    await context.modifyQp(machine.cpu, handle, connection(hasVersion2), rtrMask);
    const { roceMode, primaryPath } = qpMailbox.decode(machine.last('INIT2RTR_QP').input).context;
    expect(roceMode).toBe(hasVersion2 ? RoceMode.V2 : RoceMode.V1);
    expect(primaryPath).toMatchObject({
      grhPresent: 1,
      sourcePathBits: 0,
      remoteLid: 0,
      linkType: 1,
      sourceGidIndex: hasVersion2 ? 3 : 1,
      hopLimit: 64,
      trafficClass: 6,
      flowLabel: 5,
      // 0x83, and the priority in bits 5 to 3.
      scheduleQueue: 0x9b,
      forceEthernetPriority: 1,
    });
    expect(toHex(primaryPath.destinationMac)).toBe('0002c9654321');
    expect(toHex(primaryPath.remoteGid)).toBe(peer);
    const queried = qpMailbox.encode({ context: { remoteQpn: 0x12_3456 } });
    const others = machine.script;
    machine.script = (command) => (command.name === 'QUERY_QP' ? { output: queried } : others(command));
    await context.modifyQp(machine.cpu, handle, toRts, rtsMask);
    const { roceEntropy } = qpMailbox.decode(machine.last('RTR2RTS_QP').input).context;
    // Its highest byte over its lowest: 56 and 12 are 44, behind 34; and 0208, all above 0xc000.
    expect(qpn).toBe(0x208);
    expect(roceEntropy).toBe(hasVersion2 ? 0xf64c : 0);
  });

  it('refuses addresses without a GID, from a place without one, and of nobody', async () => {
    const { machine, context } = await open();
    const { ahAttr } = connection(hasVersion2);
    const { grh } = ahAttr;
    const macOf = (more: object) => context.createAh(machine.cpu, { ...ahAttr, ...more });
    expect(toHex((await macOf({}))!)).toBe('0002c9654321');
    const stranger = { ...grh, dgid: fromHex(peer.replace(/2$/, '9')) };
    await expect(macOf({ isGlobal: 0 })).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(macOf({ grh: { ...grh, sgidIndex: 4 } })).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(macOf({ grh: stranger })).rejects.toMatchObject({ code: 'EHOSTUNREACH' });
    // The MAC of a link-local GID is in it, whoever has it.
    expect(toHex((await macOf({ grh: { ...grh, dgid: fromHex(local) } }))!)).toBe('0002c9123456');
  });
});
