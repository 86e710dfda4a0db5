/** EQEs of the ConnectX-3, of 32 bytes (interface sheet 6.7, 3.16). */
import {
  commandEqe,
  completionEqe,
  cqErrorEqe,
  eqe,
  eqeBytes,
  pageRequestEqe,
  pageRequestIsWrite,
  portChangeEqe,
  portInfoChangeEqe,
  qpEqe,
  srqEqe,
  tableChangeEqe,
  tcpEqe,
} from '../../../abi/index.ts';
import { putAddress } from '../../../base/index.ts';
import type { EventFormat } from '../host-interface/index.ts';

/** Largest value of the length field; longer lengths are reported as this one. */
const LENGTH_MAX = 0xffff_ffff;

export const eventFormat: EventFormat = {
  entryBytes: eqeBytes,
  begin: (view, at, type, subtype) => {
    eqe.fields.type.set(view, at, type);
    eqe.fields.subtype.set(view, at, subtype);
  },
  own: (view, at, pass) => eqe.fields.owner.set(view, at, pass),
  typeAt: (view, at) => eqe.fields.type.get(view, at),
  cqnAt: (view, at) => completionEqe.fields.cqn.get(view, at),
  completion: (view, at, cqn) => completionEqe.fields.cqn.set(view, at, cqn),
  command: (view, at, token, status, high, low) => {
    const { fields } = commandEqe;
    fields.token.set(view, at, token);
    fields.status.set(view, at, status);
    view.setUint32(at + fields.outParam.wordOffset, high);
    view.setUint32(at + fields.outParam.wordOffset + 4, low);
  },
  queuePair: (view, at, qpn) => qpEqe.fields.qpn.set(view, at, qpn),
  sharedReceiveQueue: (view, at, srqn) => srqEqe.fields.srqn.set(view, at, srqn),
  cqError: (view, at, cqn, syndrome) => {
    cqErrorEqe.fields.cqn.set(view, at, cqn);
    cqErrorEqe.fields.syndrome.set(view, at, syndrome);
  },
  pageRequestSubtype: (side, isWrite) => side | (isWrite ? pageRequestIsWrite : 0),
  pageRequest: (view, at, { qpn, key, address, addressTop, lengthBytes, token }) => {
    const { fields } = pageRequestEqe;
    fields.qpn.set(view, at, qpn);
    fields.key.set(view, at, key);
    fields.lengthBytes.set(view, at, Math.min(lengthBytes, LENGTH_MAX));
    putAddress(view, at + fields.address.wordOffset, address, addressTop);
    fields.token.set(view, at, token);
  },
  port: (view, at, port) => portChangeEqe.fields.port.set(view, at, port),
  tcpConnection: (view, at, { connection, listener, cookie, terminate, qpn }) => {
    const { fields } = tcpEqe;
    fields.connection.set(view, at, connection);
    fields.listener.set(view, at, listener);
    fields.cookie.set(view, at, cookie);
    fields.terminate.set(view, at, terminate);
    fields.qpn.set(view, at, qpn);
  },
  portInfo: (view, at, info) => {
    const { fields } = portInfoChangeEqe;
    fields.port.set(view, at, info.port);
    fields.smLid.set(view, at, info.smLid);
    fields.lid.set(view, at, info.lid);
    fields.changed.set(view, at, info.changed);
    fields.smSl.set(view, at, info.smSl);
    fields.gidPrefix.set(view, at, info.gidPrefix);
  },
  portTable: (view, at, port, block, entryMask) => {
    const { fields } = tableChangeEqe;
    fields.port.set(view, at, port);
    fields.block.set(view, at, block);
    fields.entryMask.set(view, at, entryMask);
  },
};
