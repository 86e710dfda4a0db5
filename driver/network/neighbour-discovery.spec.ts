import { describe, expect, it } from 'vitest';
import { fromHex, toHex } from '../../base/bytes.ts';
import {
  neighborAdvertisement,
  neighborMessageOf,
  neighborSolicitation,
  solicitedNode,
} from './neighbour-discovery.ts';

const [mac, peerMac] = ['0002c9123456', '0002c9654321'];
const [own, peer] = ['fe800000000000000202c9fffe123456', 'fe800000000000000202c9fffe654321'];
const none = '0'.repeat(32);
const ownGroup = 'ff0200000000000000000001ff123456';
const peerGroup = 'ff0200000000000000000001ff654321';
const allNodes = `ff02${'0'.repeat(27)}1`;
const station = (address: string, its: string) => ({ address: fromHex(address), mac: fromHex(its) });

/** A frame: 32 bytes after the IPv6 header, hop limit 255. */
const frame = (to: string, from: string, source: string, destination: string, message: string): string =>
  `${to}${from}86dd60000000${(message.length / 2).toString(16).padStart(4, '0')}3aff${source}${destination}${message}`;
/** Checksums by RFC 4443, 2.3, computed independently. */
const solicitation = frame(`3333ff654321`, mac, own, peerGroup, `87002fb800000000${peer}0101${mac}`);
const advertisement = frame(mac, peerMac, peer, own, `8800f41a60000000${peer}0201${peerMac}`);
const probe = frame('3333ff123456', peerMac, none, ownGroup, `8700495400000000${own}`);
const toAll = frame('333300000001', mac, own, allNodes, `88005f5d20000000${own}0201${mac}`);

describe('Neighbor Discovery', () => {
  it('RFC 4291, 2.7.1: the group of an address has the same last bytes', () => {
    expect(toHex(solicitedNode(fromHex(peer)))).toBe(peerGroup);
  });

  it('RFC 4861, 4.3: solicits the group of an address, from its own address with its MAC', () => {
    expect(toHex(neighborSolicitation(station(own, mac), fromHex(peer)))).toBe(solicitation);
    expect(neighborMessageOf(fromHex(solicitation))).toEqual({
      isSolicitation: true,
      source: fromHex(own),
      target: fromHex(peer),
      mac: fromHex(mac),
      isSolicited: false,
      overrides: false,
    });
  });

  it('RFC 4861, 7.2.4: answers the requester, or all nodes if the requester has no address yet', () => {
    expect(toHex(neighborAdvertisement(station(peer, peerMac), station(own, mac)))).toBe(advertisement);
    expect(toHex(neighborAdvertisement(station(own, mac), station(none, peerMac)))).toBe(toAll);
    expect(neighborMessageOf(fromHex(advertisement))).toMatchObject({
      isSolicitation: false,
      target: fromHex(peer),
      mac: fromHex(peerMac),
      isSolicited: true,
      overrides: true,
    });
    expect(neighborMessageOf(fromHex(probe))).toMatchObject({ source: fromHex(none), mac: undefined });
  });

  // Messages with an error covered by the checksum carry the checksum that matches the error.
  it.each([
    ['a router has passed on', solicitation.replace('3aff', '3afe')],
    ['has a wrong checksum', solicitation.replace('2fb8', '2fb9')],
    // Code 1 takes 1 off the checksum.
    ['has a code', solicitation.replace('87002fb8', '87012fb7')],
    ['is shorter than it says', solicitation.slice(0, -2)],
    ['is not of IPv6', solicitation.replace('86dd60', '86dd40')],
    // An option of length zero; of three units where only one is present.
    ['has an empty option', solicitation.replace(`2fb800000000${peer}0101`, `2fb900000000${peer}0100`)],
    [
      'has an option beyond its end',
      solicitation.replace(`2fb800000000${peer}0101`, `2fb600000000${peer}0103`),
    ],
    [
      'gives a group for a station',
      advertisement.replace(`f41a60000000${peer}02010002`, `f31a60000000${peer}02010102`),
    ],
  ])('RFC 4861, 7.1: drops what %s', (_what, bytes) => {
    expect(neighborMessageOf(fromHex(bytes))).toBe('malformed');
  });

  it.each([
    // Each with its correct checksum.
    ['asks for a group', solicitation.replace(`2fb800000000fe80`, '2f3600000000ff02')],
    [
      'says that it was asked for, to a group',
      frame('333300000001', mac, own, allNodes, `88001f5d60000000${own}0201${mac}`),
    ],
    [
      'gives a MAC for no address',
      frame('3333ff123456', peerMac, none, ownGroup, `87003bc200000000${own}0101${peerMac}`),
    ],
    [
      'asks a single station for one without an address',
      frame(mac, peerMac, none, own, `87007ed500000000${own}`),
    ],
  ])('RFC 4861, 7.1: drops what %s', (_what, bytes) => {
    expect(neighborMessageOf(fromHex(bytes))).toBe('malformed');
  });

  it('ignores other protocols', () => {
    // An echo request; UDP.
    expect(neighborMessageOf(fromHex(frame(mac, peerMac, peer, own, `8000${'0'.repeat(44)}`)))).toBe('other');
    expect(neighborMessageOf(fromHex(solicitation.replace('3aff', '11ff')))).toBe('other');
  });
});
