/** Frames of the kernel: which are answered, learnt and dropped. All bytes are written out here; checksums were computed independently. */
import { describe, expect, it, vi } from 'vitest';
import { fromHex, toHex, viewOf } from '../../base/bytes.ts';
import { ethernetPortOf } from '../ethernet-port.ts';
import { openEthernet } from '../testing-ethernet.ts';
import type { NetworkCounts } from './index.ts';

const [mac, peerMac] = ['0002c9123456', '0002c9654321'];
const [own, peer] = ['fe800000000000000202c9fffe123456', 'fe800000000000000202c9fffe654321'];
const [ownIp, peerIp, otherIp] = ['0a000001', '0a000002', '0a000003'];
const none = '000000000000';
const ipv4Gid = (address: string): Uint8Array => fromHex(`00000000000000000000ffff${address}`);

const arp = (
  to: string,
  operation: number,
  sender: string,
  senderIp: string,
  target: string,
  targetIp: string,
): string => `${to}${sender}0806000108000604000${operation}${sender}${senderIp}${target}${targetIp}`;
const broadcast = 'ffffffffffff';
const request = arp(broadcast, 1, peerMac, peerIp, none, ownIp);
const answer = arp(mac, 2, peerMac, peerIp, mac, ownIp);
const ipv6 = (to: string, from: string, source: string, destination: string, message: string): string =>
  `${to}${from}86dd6000000000203aff${source}${destination}${message}`;
const solicitation = ipv6(
  '3333ff123456',
  peerMac,
  peer,
  'ff0200000000000000000001ff123456',
  `87002fb800000000${own}0101${peerMac}`,
);
const advertisement = ipv6(mac, peerMac, peer, own, `8800f41a60000000${peer}0201${peerMac}`);

/** Data of a WQE with inline segments, none of them across a boundary of 64 bytes. */
function inlineOf(wqe: Uint8Array): string {
  const view = viewOf(wqe);
  let text = '';
  for (let at = 16; at < wqe.length && view.getUint32(at) >>> 31 === 1; ) {
    const byteCount = view.getUint32(at) & 0x3ff;
    expect(Math.floor((at + 4) / 64)).toBe(Math.floor((at + 3 + byteCount) / 64));
    text += toHex(wqe.subarray(at + 4, at + 4 + byteCount));
    at = Math.ceil((at + 4 + byteCount) / 16) * 16;
  }
  return text;
}

async function bench() {
  const { machine, driver, context } = await openEthernet(true);
  const { interface: network } = ethernetPortOf(driver.device.ports[0])!;
  const stored: Uint8Array[] = [];
  const { storeMemory } = machine.cpu;
  vi.spyOn(machine.cpu, 'storeMemory').mockImplementation((address, bytes) => {
    stored.push(bytes.slice());
    storeMemory(address, bytes);
  });
  const macs: string[] = [];
  const none = Object.fromEntries(Object.keys(network.counts).map((name) => [name, 0]));
  return {
    machine,
    context,
    network,
    /** Frames that were posted, and the first dword of each one's WQE. */
    sent: () => stored.map(inlineOf),
    heads: () => stored.map((wqe) => toHex(wqe.subarray(0, 4))),
    receive: (frame: string) => network.receive(machine.cpu, fromHex(frame)),
    /** Requested MACs that are known, or the error. */
    macs,
    ask: (address: Uint8Array) =>
      network.resolve(machine.cpu, address, 1000, (outcome) =>
        macs.push(typeof outcome === 'number' ? String(outcome) : toHex(outcome)),
      ),
    expectCounts: (counts: Partial<NetworkCounts>) => expect(network.counts).toEqual({ ...none, ...counts }),
  };
}

describe('the interface of a port', () => {
  it('RFC 826: resolves an IPv4 address by ARP, once for all waiting callers, and uses the answer', async () => {
    const { sent, receive, ask, macs, expectCounts } = await bench();
    ask(ipv4Gid(peerIp));
    ask(ipv4Gid(peerIp));
    expect([sent(), macs]).toEqual([[arp(broadcast, 1, mac, ownIp, none, peerIp)], []]);
    // The cable pads it.
    receive(answer.padEnd(120, '0'));
    ask(ipv4Gid(peerIp));
    expect(macs).toEqual([peerMac, peerMac, peerMac]);
    expectCounts({ requests: 1, resolved: 1, received: 1 });
  });

  it('RFC 4861, 7.2.2: solicits the group of an IPv6 address, from its own address', async () => {
    const { sent, receive, ask, macs, expectCounts } = await bench();
    ask(fromHex(peer));
    const group = 'ff0200000000000000000001ff654321';
    expect(sent()).toEqual([ipv6('3333ff654321', mac, own, group, `87002fb800000000${peer}0101${mac}`)]);
    receive(advertisement);
    expect(macs).toEqual([peerMac]);
    expectCounts({ requests: 1, resolved: 1, received: 1 });
  });

  it('answers a requester, and learns it', async () => {
    const { sent, receive, ask, macs, expectCounts } = await bench();
    receive(request);
    receive(solicitation);
    ask(ipv4Gid(peerIp));
    ask(fromHex(peer));
    expect(macs).toEqual([peerMac, peerMac]);
    expect(sent()).toEqual([
      arp(peerMac, 2, mac, ownIp, peerMac, peerIp),
      ipv6(peerMac, mac, own, peer, `8800125760000000${own}0201${mac}`),
    ]);
    expectCounts({ received: 2, answers: 2 });
  });

  it('RFC 5227, 2.1.1; RFC 4861, 7.2.4: answers a requester without an address, and learns nothing', async () => {
    const { sent, receive, ask, macs } = await bench();
    receive(arp(broadcast, 1, peerMac, '00000000', none, ownIp));
    const probe = `87004954${'0'.repeat(8)}${own}`;
    const head = `3333ff123456${peerMac}86dd6000000000183aff${'0'.repeat(32)}ff0200000000000000000001ff123456`;
    receive(head + probe);
    expect(sent()).toEqual([
      arp(peerMac, 2, mac, ownIp, peerMac, '00000000'),
      ipv6('333300000001', mac, own, `ff02${'0'.repeat(27)}1`, `88005f5d20000000${own}0201${mac}`),
    ]);
    ask(ipv4Gid(peerIp));
    expect(macs).toEqual([]);
  });

  it.each([
    ['an answer that nobody has asked for', answer, 'unsolicited'],
    [
      'an answer of ARP to somebody else',
      arp(peerMac, 2, '0002c9777777', otherIp, peerMac, peerIp),
      'unsolicited',
    ],
    ['an advertisement that nobody has asked for', advertisement, 'unsolicited'],
    ['a request for somebody else', arp(broadcast, 1, peerMac, peerIp, none, otherIp), 'ignored'],
    ['a request from another link', arp(broadcast, 1, peerMac, '0b000002', none, ownIp), 'ignored'],
    [
      'a solicitation for somebody else',
      ipv6(
        '3333ff777777',
        peerMac,
        peer,
        'ff0200000000000000000001ff777777',
        `8700a8ab00000000fe800000000000000202c9fffe7777770101${peerMac}`,
      ),
      'ignored',
    ],
    ['one with its own address of IPv4', arp(broadcast, 1, peerMac, ownIp, none, peerIp), 'conflicting'],
    [
      'one with its own address of IPv6',
      ipv6(mac, peerMac, own, own, `8800725700000000${own}0201${peerMac}`),
      'conflicting',
    ],
    ['a wrong checksum', advertisement.replace('f41a', 'f41b'), 'malformed'],
    ['another hardware', answer.replace('00010800', '00060800'), 'malformed'],
    ['an experimental protocol', `${mac}${peerMac}88b5${'0'.repeat(92)}`, 'ignored'],
    ['less than a header', mac, 'ignored'],
  ] as const)('drops %s', async (_what, frame, reason) => {
    const { receive, sent, ask, macs, expectCounts } = await bench();
    receive(frame);
    expectCounts({ received: 1, [reason]: 1 });
    expect(sent()).toEqual([]);
    ask(ipv4Gid(peerIp));
    ask(fromHex(peer));
    expect(macs).toEqual([]);
  });

  it('has no route to addresses of other links, nor to groups', async () => {
    const { network, machine } = await bench();
    const elsewhere = [
      ipv4Gid('0a000102'),
      ipv4Gid('e0000001'),
      fromHex(`2001${'0'.repeat(27)}1`),
      fromHex(`ff02${'0'.repeat(27)}1`),
    ];
    for (const address of elsewhere)
      expect(() => network.resolve(machine.cpu, address, 1000, () => undefined)).toThrow('ENETUNREACH');
  });

  it('sheet 6.2: posts no more frames than its queue holds', async () => {
    const { heads, receive, expectCounts } = await bench();
    for (let count = 0; count < 34; count++) receive(request);
    // One of the 32 slots stays free. The opcode is SEND, in the first pass.
    expect(heads()).toEqual(Array(31).fill('0000000a'));
    expectCounts({ received: 34, answers: 34, failed: 3 });
  });

  it('that is removed leaves no thread waiting', async () => {
    const { network, machine } = await bench();
    const waiting = network.lookUp(machine.cpu, ipv4Gid(peerIp), 1000);
    await network.close(machine.cpu);
    await expect(waiting).rejects.toMatchObject({ code: 'ENODEV' });
  });
});
