/** The addresses of a connection in front of a REQ's private data. Source: IBTA annex A11. */
import { ipCmHeader } from '../../abi/index.ts';
import { textOfGid } from '../address-text.ts';
import type { RdmaConnParam, SocketAddress } from '../rdma-cm.ts';
import type { CmAttribute, CmMessage } from './cm-mad.ts';
import type { ConnectionAddresses, IncomingRequest } from './connector.ts';
import { gidOfAddress, isIpv4Address } from './internet-address.ts';

/** Parameters of a REQ as the passive side sees them: its depth is the active side's resources. */
function parametersOfRequest(request: CmMessage<typeof CmAttribute.REQ>): RdmaConnParam {
  return {
    privateData: request.privateData.subarray(ipCmHeader.sizeBytes),
    responderResources: request.initiatorDepth,
    initiatorDepth: request.responderResources,
    flowControl: request.endToEndFlowControl,
    retryCount: request.retryCount,
    rnrRetryCount: request.rnrRetryCount,
    srq: request.srq,
    qpNum: request.localQpn,
  };
}

/** Offset of an IPv4 address: it has the last four bytes, after zeros. */
const ipv4At = 12;
const ipBytes = ({ sinAddr }: SocketAddress): Uint8Array => {
  const gid = gidOfAddress(sinAddr);
  return isIpv4Address(sinAddr) ? gid.fill(0, 0, ipv4At) : gid;
};

/** Private data of a REQ: the addresses, then the program's own bytes. */
export function privateDataWith({ src, dst }: ConnectionAddresses, own: Uint8Array): Uint8Array {
  const privateData = new Uint8Array(ipCmHeader.sizeBytes + own.length);
  ipCmHeader.encodeInto(
    {
      ipVersion: isIpv4Address(dst.sinAddr) ? 4 : 6,
      sourcePort: src.sinPort,
      sourceAddress: ipBytes(src),
      destinationAddress: ipBytes(dst),
    },
    privateData,
  );
  privateData.set(own, ipCmHeader.sizeBytes);
  return privateData;
}

/** Reads the request from a REQ; undefined if its private data do not begin with addresses. */
export function incomingRequestOf(request: CmMessage<typeof CmAttribute.REQ>): IncomingRequest | undefined {
  const header = ipCmHeader.decode(request.privateData);
  const { majorVersion, ipVersion, sourceAddress, destinationAddress, sourcePort } = header;
  if (majorVersion !== 0 || (ipVersion !== 4 && ipVersion !== 6)) return undefined;
  const textOf = (bytes: Uint8Array): string =>
    ipVersion === 4 ? bytes.subarray(ipv4At).join('.') : textOfGid(bytes);
  return {
    ownAddress: textOf(destinationAddress),
    peer: { sinAddr: textOf(sourceAddress), sinPort: sourcePort },
    conn: parametersOfRequest(request),
  };
}
