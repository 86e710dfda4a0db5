/** A card with both versions of RoCE: the answers of a connection use the version of its request, as in Linux (cm.c, cm_req_handler). */
import { describe, expect, it } from 'vitest';
import { fromHex } from '../../base/bytes.ts';
import { ethernetPortOf } from '../ethernet-port.ts';
import { openEthernet } from '../testing-ethernet.ts';
import { CmAttribute, cmMad } from './cm-mad.ts';
import { CommunicationIds } from './communication-ids.ts';
import type { Connection } from './connection.ts';
import { ConnectionManager } from './connection-manager.ts';
import type { CmListener } from './connector.ts';
import type { Path } from './path.ts';
import { isRoutableHeader } from './roce-headers.ts';
import { requestPrivateData } from './testing-cm.ts';

const gids = {
  linkLocal: fromHex('fe800000000000000202c9fffe654321'),
  ipv4: fromHex('00000000000000000000ffff0a000002'),
} as const;
const mac = fromHex('0002c9654321');

/** The path of a connection that such a MAD requested. */
async function pathAsked(gid: Uint8Array, isRoutable: boolean): Promise<Path> {
  const { machine, driver } = await openEthernet(true);
  const port = ethernetPortOf(driver.device.ports[0])!;
  const paths: Path[] = [];
  const listener: CmListener<Connection> = {
    requested(_cpu, _request, connection) {
      paths.push(connection.path);
      return 'taken';
    },
  };
  const manager = new ConnectionManager({
    platform: machine.platform,
    caGuid: 1n,
    ids: new CommunicationIds(0),
    listeners: new Map([[7n, listener]]),
    gidIndexTo: (remote, isVersion2) => port.gidIndexTo(remote, isVersion2),
    send: () => {},
  });
  const bytes = cmMad(CmAttribute.REQ, 9n, {
    localCommId: 5,
    localCaGuid: 2n,
    localQpn: 0x48,
    serviceId: 7n,
    primaryLocalGid: gid,
    privateData: requestPrivateData,
  });
  manager.receive(machine.cpu, { from: { lid: 0, serviceLevel: 0, roce: { gid, mac } }, isRoutable, bytes });
  return paths[0]!;
}

describe('the path back from a request', () => {
  // The port's table: the link-local GID by versions 1 and 2, then the GID of the IPv4 address.
  it.each([
    ['linkLocal', false, 0],
    ['linkLocal', true, 1],
    ['ipv4', false, 2],
    ['ipv4', true, 3],
  ] as const)(
    'to a GID of kind %s, requested by version 2: %s, uses index %i',
    async (kind, isRoutable, place) => {
      expect((await pathAsked(gids[kind], isRoutable)).roce?.sgidIndex).toBe(place);
    },
  );
});

describe('the 40 bytes before a received MAD', () => {
  it.each([
    // IBTA vol 1, 8.3: version 6, payload 280, next header 1b; as an IPv6 header, with 17 for UDP; an IPv4 header after 20
    // unused bytes.
    ['a GRH', `6000000001181b40${'00'.repeat(32)}`, false],
    ['an IPv6 header', `6000000001201140${'00'.repeat(32)}`, true],
    ['an IPv4 header', `${'00'.repeat(20)}450001340000400040110000${'00'.repeat(8)}`, true],
  ])('say which version it came by: %s', (_what, bytes, isRoutable) => {
    expect(isRoutableHeader(fromHex(bytes))).toBe(isRoutable);
  });
});
