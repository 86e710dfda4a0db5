/** The commands that bring up an Ethernet port with RoCE, and the contexts of its QPs, byte for byte by the interface sheet. */
import { describe, expect, it } from 'vitest';
import { qpMailbox, RoceMode } from '../abi/qpc.ts';
import { fromHex, toHex } from '../base/bytes.ts';
import { ethernetPortOf } from './ethernet-port.ts';
import { initMask, rtrMask, rtsMask, type TestContext, toInit, toRtr, toRts } from './testing-context.ts';
import { openEthernet } from './testing-ethernet.ts';

const local = 'fe800000000000000202c9fffe123456';
const own = '00000000000000000000ffff0a000001';
const peer = '00000000000000000000ffff0a000002';

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

/** Lets a neighbour request this port by ARP, which also announces the neighbour's address. */
function meetPeer({ driver, machine }: TestContext): void {
  const request = 'ffffffffffff0002c96543210806000108000604';
  const rest = '00010002c96543210a0000020000000000000a000001';
  ethernetPortOf(driver.device.ports[0])!.interface.receive(machine.cpu, fromHex(`${request}${rest}`));
}

describe.each([false, true])('an Ethernet port on a device with version 2: %s', (hasVersion2) => {
  const open = () => openEthernet(hasVersion2);

  it('sheet 8.3: receives MTU and MAC, is opened, and receives its GIDs', async () => {
    const { machine } = await open();
    const names = ['SET_PORT', 'INIT_PORT', 'CONFIG_DEV', 'SET_MCAST_FLTR'];
    const seen = machine.commands.filter(({ name }) => names.includes(name));
    expect(seen.map((command) => [command.name, command.inputModifier, command.opcodeModifier])).toEqual([
      ['SET_PORT', 0x001, 1],
      ['SET_PORT', 0x201, 1],
      ['SET_PORT', 0x101, 1],
      ['INIT_PORT', 1, 0],
      ['SET_MCAST_FLTR', 1, 1],
      ['SET_MCAST_FLTR', 1, 0],
      ['SET_MCAST_FLTR', 1, 0],
      ['SET_MCAST_FLTR', 1, 0],
      ['SET_MCAST_FLTR', 1, 2],
      ...(hasVersion2 ? [['CONFIG_DEV', 0, 0]] : []),
      ['SET_PORT', hasVersion2 ? 0xd01 : 0x501, 1],
    ]);
    const [general, macs] = seen;
    // Flags: MTU and pause; with both versions bit 4, and mode 2. 4200 and 26 are 0x1082; pause in both directions.
    expect(toHex(general!.input.subarray(2, 13))).toBe(
      hasVersion2 ? '0017200010828000000080' : '0007000010828000000080',
    );
    expect(toHex(macs!.input.subarray(0, 16))).toBe('80000002c91234560000000000000000');
    // 2^18 QPs less 2^16 of exchanges and 2^14 of addresses; all addresses for groups, too.
    const qpn = '0002c000';
    expect(toHex(seen[2]!.input.subarray(0, 0x1c))).toBe(
      `${qpn}0007${'0'.repeat(18)}01${'0'.repeat(8)}${qpn}80${qpn.slice(2)}`,
    );
    // All stations instead of all groups; all nodes of IPv6; the nodes whose address ends in 12:34:56.
    const groups = ['8000ffffffffffff', '0000333300000001', '00003333ff123456'];
    expect(seen.slice(5, 8).map(({ inParam }) => inParam.toString(16).padStart(16, '0'))).toEqual(groups);
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

  it('sheet 8.3: disables pause in both directions if the driver must not use it', async () => {
    const { machine } = await openEthernet(hasVersion2, { usesPause: false });
    const general = machine.commands.find(({ name }) => name === 'SET_PORT')!;
    // The bytes are as above, except the two bits.
    expect(toHex(general.input.subarray(2, 13))).toBe(
      hasVersion2 ? '0017200010820000000000' : '0007000010820000000000',
    );
  });

  it('sheet 8.3: names priorities for PFC in both directions, and then no pause of all traffic', async () => {
    const { machine } = await openEthernet(hasVersion2, { pfcPriorities: 0x08 });
    const general = machine.commands.find(({ name }) => name === 'SET_PORT')!;
    // At 8 and c the bits of PAUSE, at 9 and d the masks.
    expect(toHex(general.input.subarray(8, 14))).toBe('000800000008');
  });

  it('sheet 5.1.1: has a connection use the MAC of its peer, its own by index, with priority and version', async () => {
    const opened = await open();
    const { machine, context } = opened;
    expect(await context.queryPort(machine.cpu, 1)).toMatchObject({
      activeMtu: 5,
      activeWidth: 2,
      activeSpeed: 4,
      linkLayer: 2,
    });
    meetPeer(opened);
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
    // The QPN's highest byte XOR its lowest: 56 and 12 are 44, after 34; and 0208, all above 0xc000.
    expect(qpn).toBe(0x208);
    expect(roceEntropy).toBe(hasVersion2 ? 0xf64c : 0);
  });

  it('ib_resolve_unicast_gid_dmac: rejects addresses without a GID, from an empty index or one of another kind, and of other links', async () => {
    const opened = await open();
    const { machine, context } = opened;
    meetPeer(opened);
    const { ahAttr } = connection(hasVersion2);
    const { grh } = ahAttr;
    const macOf = (more: object) => context.createAh(machine.cpu, { ...ahAttr, ...more });
    expect(toHex((await macOf({}))!)).toBe('0002c9654321');
    const elsewhere = { ...grh, dgid: fromHex(peer.replace(/0a000002$/, '0a000102')) };
    await expect(macOf({ isGlobal: 0 })).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(macOf({ grh: { ...grh, sgidIndex: 4 } })).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(macOf({ grh: { ...grh, sgidIndex: 0 } })).rejects.toMatchObject({ code: 'EINVAL' });
    await expect(macOf({ grh: elsewhere })).rejects.toMatchObject({ code: 'ENETUNREACH' });
    // It need not resolve its own address.
    expect(toHex((await macOf({ grh: { ...grh, dgid: fromHex(own) } }))!)).toBe('0002c9123456');
    // A link-local GID of version 1 contains the MAC, whichever station has it.
    const far = fromHex(local.replace('123456', 'abcdef'));
    expect(toHex((await macOf({ grh: { ...grh, sgidIndex: 0, dgid: far } }))!)).toBe('0002c9abcdef');
  });

  it('ib_resolve_eth_dmac: derives the MACs of groups from their GIDs: RFC 1112, 6.4 for IPv4, RFC 2464, 7 for IPv6', async () => {
    const { machine, context } = await open();
    const { ahAttr } = connection(hasVersion2);
    const { grh } = ahAttr;
    const macOf = async (dgid: string, sgidIndex: number) =>
      toHex(
        (await context.createAh(machine.cpu, {
          ...ahAttr,
          grh: { ...grh, sgidIndex, dgid: fromHex(dgid) },
        }))!,
      );
    // rdma_cm makes an IPv6 group for 224.129.2.3 with version 1, also from an IPv4 address.
    const [ofLink, ofIpv4] = hasVersion2 ? [0, 2] : [0, 1];
    for (const place of [ofLink, ofIpv4])
      expect(await macOf('ff0e0000000000000000ffffe0810203', place)).toBe('3333e0810203');
    if (!hasVersion2) return;
    expect(await macOf('ff0e000000000000000000000000abcd', 1)).toBe('33330000abcd');
    expect(await macOf('00000000000000000000ffffe0810203', 3)).toBe('01005e010203');
    expect(await macOf('00000000000000000000ffffefffffff', 3)).toBe('01005e7fffff');
  });
});
