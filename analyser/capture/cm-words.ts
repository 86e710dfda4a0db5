/** A communication management message in words, as a line of a conversation shows it. */
import { cmMessages, ipCmHeader, ipServicePrefix } from '../../abi/index.ts';
import { hex, ipv6Text } from './address-text.ts';

const PORT_SPACE_MASK = 0xffff_ffff_ff00_0000n;
const IPV4 = 4;
/** An IPv4 address is the last four of its sixteen bytes. */
const IPV4_PLACE = 12;

/** @param data the MAD after its common header */
export function cmWords(data: Uint8Array, attributeId: number): string {
  switch (attributeId) {
    case 0x10: {
      const { localCommId, serviceId, localQpn, startingPsn, privateData } = cmMessages[0x10].decode(data);
      const service = `${serviceWords(serviceId)}${addressWords(serviceId, privateData)}`;
      return `CM REQ ${hex(localCommId)}: ${service}, QP ${localQpn}, PSN ${startingPsn}`;
    }
    case 0x13: {
      const { localCommId, remoteCommId, localQpn, startingPsn } = cmMessages[0x13].decode(data);
      return `CM REP ${hex(localCommId)} to ${hex(remoteCommId)}: QP ${localQpn}, PSN ${startingPsn}`;
    }
    case 0x12: {
      const { remoteCommId, reason } = cmMessages[0x12].decode(data);
      return `CM REJ to ${hex(remoteCommId)}: reason ${reason}`;
    }
    case 0x17:
      return `CM SIDR_REQ: ${serviceWords(cmMessages[0x17].decode(data).serviceId)}`;
    case 0x18:
      return `CM SIDR_REP: QP ${cmMessages[0x18].decode(data).qpn}`;
    case 0x11:
    case 0x14:
    case 0x15:
    case 0x16: {
      const message = cmMessages[attributeId];
      const { localCommId, remoteCommId } = message.decode(data);
      return `CM ${message.name} ${hex(localCommId)} to ${hex(remoteCommId)}`;
    }
    default:
      return `CM message ${hex(attributeId)}`;
  }
}

const isOfIp = (serviceId: bigint): boolean => (serviceId & PORT_SPACE_MASK) === ipServicePrefix;

/** Address and port of the requester, if the private data begins with IP addresses. */
function addressWords(serviceId: bigint, privateData: Uint8Array): string {
  if (!isOfIp(serviceId)) return '';
  const { ipVersion, sourceAddress, sourcePort } = ipCmHeader.decode(
    privateData.subarray(0, ipCmHeader.sizeBytes),
  );
  const address = ipVersion === IPV4 ? sourceAddress.subarray(IPV4_PLACE).join('.') : ipv6Text(sourceAddress);
  return ` from ${address} port ${sourcePort}`;
}

function serviceWords(serviceId: bigint): string {
  if (!isOfIp(serviceId)) return `service ${hex(serviceId)}`;
  return `port ${serviceId & 0xffffn} of space ${hex((serviceId >> 16n) & 0xffn)}`;
}
