/**
 * More mistakes of the catalogue: further questions from forums and bug trackers, and a program for each rule that the
 * classic mistakes do not reach.
 */

import { connectInitiator, connectTarget, rcDefaults } from '../../../experiments/workloads/index.ts';
import {
  allocMw,
  bindMw,
  createAhFromWc,
  createCompChannel,
  createCq,
  createQp,
  createQpEx,
  createSrq,
  createSrqEx,
  deregMr,
  destroyCq,
  destroyQp,
  getAsyncEvent,
  getCqEvent,
  getSrqNum,
  IBV_ACCESS_LOCAL_WRITE,
  IBV_ACCESS_MW_BIND,
  IBV_ACCESS_ON_DEMAND,
  IBV_ACCESS_REMOTE_READ,
  IBV_ACCESS_REMOTE_WRITE,
  IBV_MTU_256,
  IBV_MTU_1024,
  IBV_MW_TYPE_1,
  IBV_QP_STATE,
  IBV_QPS_RESET,
  IBV_QPT_RC,
  IBV_QPT_XRC_RECV,
  IBV_QPT_XRC_SEND,
  IBV_REREG_MR_CHANGE_ACCESS,
  IBV_REREG_MR_CHANGE_TRANSLATION,
  IBV_SEND_FENCE,
  IBV_SEND_INLINE,
  IBV_SEND_SIGNALED,
  IBV_SRQ_LIMIT,
  IBV_SRQT_XRC,
  IBV_WC_SUCCESS,
  IBV_WR_ATOMIC_FETCH_AND_ADD,
  IBV_WR_LOCAL_INV,
  IBV_WR_RDMA_READ,
  IBV_WR_RDMA_WRITE,
  IBV_WR_SEND,
  IBV_WR_SEND_WITH_INV,
  type IbvMw,
  type IbvSrq,
  IbvWc,
  modifyQp,
  modifySrq,
  O_CREAT,
  openXrcd,
  pollCq,
  postRecv,
  postSend,
  postSrqRecv,
  regMr,
  reqNotifyCq,
  reregMr,
  smSetPkeys,
} from '../../../userlib/index.ts';
import {
  datagram,
  expects,
  ib,
  idle,
  later,
  type Mistake,
  receives,
  roce,
  sendAndTake,
  sendDatagram,
  side,
  strangeGid,
  uc,
  ud,
  waits,
  wellConnected,
  write,
} from './mistakes.ts';
import { allAccess, pathOf, type Side } from './scene.ts';

/** An empty shared receive queue of 16. */
const sharedQueue = ({ pd }: Pick<Side, 'pd'>): Promise<IbvSrq> =>
  createSrq(pd, { attr: { maxWr: 16, maxSge: 1 } });

/** Ends long after the peer's requests have been answered. */
const rests = (here: Side): Promise<void> => here.program.cpu.sleep(1e10);

/** Posts receives to the shared queue of the QP. */
function receivesShared(here: Side, count: number): void {
  const sgList = [{ addr: here.buffer, length: 256, lkey: here.mr.lkey }];
  for (let posted = 0; posted < count; posted++) postSrqRecv(here.qp.srq!, { wrId: 1, sgList, numSge: 1 });
}

/** Binds a window to the first bytes of the buffer, for WRITEs of the peer. */
async function bind(here: Side, mw: IbvMw, length: number): Promise<void> {
  const bindInfo = { mr: here.mr, addr: here.buffer, length, mwAccessFlags: IBV_ACCESS_REMOTE_WRITE };
  bindMw(here.qp, mw, { wrId: 1, sendFlags: IBV_SEND_SIGNALED, bindInfo });
  await here.mustTake();
}

/** Services without acknowledgements: packets that their receivers drop. */
const dropped: readonly Mistake[] = [
  {
    name: 'a message of UC to a QP in INIT',
    cause: 'uc-qp-state',
    node: 1,
    says: /of an unreliable connection to QP .* without an answer: the QP was in INIT \(packet/,
    host0: side(async (here) => {
      here.send();
      await here.mustTake();
    }, uc()),
    host1: side(expects, uc({ stopsIn: 'INIT' })),
  },
  {
    name: 'a message of UC in another partition',
    cause: 'uc-pkey',
    node: 1,
    networks: ib,
    says: /found P_Key 0xffff, held to P_Key 0x0 \(packetPkey\)/,
    host0: side(async (here) => {
      here.send();
      await here.mustTake();
    }, uc()),
    host1: side(expects, uc({ init: { pkeyIndex: 1 } })),
  },
  {
    name: 'a message of UC to an RC QP',
    cause: 'uc-wrong-service',
    node: 1,
    says: /\(packetOpcode\)/,
    host0: side(async (here) => {
      here.send();
      await here.mustTake();
    }, uc()),
    host1: side(expects, wellConnected),
  },
  {
    name: 'a message of UC to another LID',
    cause: 'uc-wrong-lid',
    node: 1,
    networks: ib,
    says: /found DLID 0x44, held to LID 0x2 \(packetForeignLid\)/,
    host0: side(
      async (here) => {
        here.send();
        await here.mustTake();
      },
      uc({ rtr: () => ({ ahAttr: { dlid: 0x44, isGlobal: 0, portNum: 1 } }) }),
    ),
    host1: side(expects, uc()),
  },
  {
    name: 'a message of UC to another GID',
    cause: 'uc-wrong-gid',
    node: 1,
    networks: roce,
    says: /GID|MAC/,
    host0: side(
      async (here) => {
        here.send();
        await here.mustTake();
      },
      uc({
        gidFromEnd: 3,
        rtr: (peer) => ({ ahAttr: pathOf({ isEthernet: true, gidIndex: 0 }, { ...peer, gid: strangeGid }) }),
      }),
    ),
    host1: side(expects, uc({ gidFromEnd: 3 })),
  },
  {
    name: 'a datagram to another GID',
    cause: 'ud-wrong-gid',
    node: 1,
    networks: roce,
    says: /GID|MAC/,
    host0: side(
      datagram({}, (peer) => ({ ...peer, gid: strangeGid })),
      ud({ gidFromEnd: 3 }),
    ),
    host1: side(expects, ud({ gidFromEnd: 3 })),
  },
  {
    name: 'a datagram to an RC QP',
    cause: 'ud-wrong-service',
    node: 1,
    says: /which is no UD QP \(packetOpcode\)/,
    host0: side(async (here) => {
      const qpn = Number(await here.program.exchange.take('rc'));
      sendDatagram(here, await here.handle(), { qpn }); // here
      await here.take();
    }, ud()),
    host1: side(async (here) => {
      const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
      const init = { sendCq: here.cq, recvCq: here.cq, qpType: IBV_QPT_RC, cap };
      const other = await createQp(here.pd, init);
      await modifyQp(
        other,
        { qpState: 1, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 },
        IBV_QP_STATE | 0x10 | 0x20 | 0x8,
      );
      await here.program.exchange.put('rc', other.qpNum);
      await here.mustTake();
    }, ud()),
  },
  {
    name: 'a datagram with a controlled Q_Key, which its sender does not have',
    cause: 'ud-qkey',
    node: 1,
    says: /they carry Q_Key 0x1111, the QP has Q_Key 0x80000001/,
    host0: side(datagram({ qkey: 0x8000_0001 }), ud()),
    host1: side(expects, ud({ init: { qkey: 0x8000_0001 } })),
  },
  {
    name: 'a message of UC is lost on the cable',
    cause: 'packets-lost',
    node: 1,
    networks: ib,
    says: /fired 1 time, and UC sends nothing again/,
    faults: [{ packet: 'lost', node: 0, nth: 'every' }],
    host0: side(async (here) => {
      here.send();
      await here.mustTake();
    }, uc()),
    host1: side(expects, uc()),
  },
  {
    name: 'a message of UC is damaged within a switch or adapter',
    cause: 'packets-lost',
    node: 1,
    networks: ib,
    says: /A switch or an adapter damaged packets for .* UC sends nothing again/,
    faults: [{ packet: 'corrupted', crc: 'icrc', node: 0, nth: 'every' }],
    host0: side(async (here) => {
      here.send();
      await here.mustTake();
    }, uc()),
    host1: side(expects, uc()),
  },
  {
    name: 'a datagram is lost on the cable',
    cause: 'packets-lost',
    node: 1,
    networks: ib,
    says: /fired 1 time, and UD sends nothing again/,
    faults: [{ packet: 'lost', node: 0, nth: 'every' }],
    host0: side(datagram(), ud()),
    host1: side(expects, ud()),
  },
  {
    name: 'the path MTUs of an unreliable connection differ',
    cause: 'mtu-mismatch',
    node: 1,
    says: /has a path MTU of 256 bytes, QP .* of host 1 has 1024: its SEND of 1000 bytes was dropped/,
    host0: side(
      async (here) => {
        here.send({ bytes: 1000 });
        await here.mustTake();
      },
      uc({ rtr: () => ({ pathMtu: IBV_MTU_256 }) }),
    ),
    host1: side(expects, uc({ inInit: receives(4, 2000), rtr: () => ({ pathMtu: IBV_MTU_1024 }) })),
  },
  {
    name: 'a datagram to a group that nobody is attached to',
    cause: 'ud-group-not-attached',
    node: 1,
    networks: ib,
    says: /to a multicast group \(QP 0xffffff\): no QP of host 1 is attached to it/,
    host0: side(
      datagram({ qpn: 0xff_ffff }, (peer) => ({ ...peer, lid: 0xc001 })),
      ud(),
    ),
    host1: side(expects, ud()),
  },
  {
    name: 'a datagram to a shared queue whose receives have no room for the GRH',
    cause: 'ud-receive-too-short',
    node: 1,
    says: /40 bytes for the GRH come before the payload/,
    host0: side(async (here) => {
      await here.awaitSignal('posted');
      await datagram()(here);
    }, ud()),
    host1: side(
      async (here) => {
        const sgList = [{ addr: here.buffer, length: 64, lkey: here.mr.lkey }];
        postSrqRecv(here.qp.srq!, { wrId: 1, sgList, numSge: 1 });
        await here.signal('posted');
        await here.mustTake();
      },
      ud({ inInit: () => {}, srq: sharedQueue }),
    ),
  },
  {
    name: 'a datagram is read where its GRH is',
    cause: 'grh-not-skipped',
    node: 1,
    watch: 'races',
    says: /threw "Error: wrong payload" after it had read 1 byte of the first 40 of a receive of QP/,
    evidence: { bytes: 1 },
    host0: side(
      async (here) => {
        here.program.memory.write(here.buffer, Uint8Array.of(7));
        await datagram()(here);
      },
      ud({ inInit: () => {} }),
    ),
    host1: side(
      async (here) => {
        await here.mustTake();
        if (here.program.memory.read(here.buffer, 1)[0] !== 7) throw new Error('wrong payload');
      },
      ud({ inInit: receives(1) }),
    ),
  },
  {
    name: 'a program reads a whole GRH, for an address handle, and fails by a check of its own',
    cause: 'program-threw',
    node: 1,
    watch: 'races',
    says: /threw "Error: another protocol"; no call was refused/,
    host0: side(datagram(), ud()),
    host1: side(
      async (here) => {
        const wc = await here.mustTake();
        const grh = here.program.memory.read(here.buffer, 40);
        await createAhFromWc(here.pd, wc, grh, 1);
        throw new Error('another protocol');
      },
      ud({ inInit: receives(1) }),
    ),
  },
  {
    name: 'a datagram is waited for where its GRH is',
    cause: 'grh-not-skipped',
    node: 1,
    watch: 'races',
    says: /of the first 40 of a receive of QP .* the payload of a datagram begins at byte 40/,
    host0: side(
      async (here) => {
        here.program.memory.write(here.buffer, Uint8Array.of(7));
        await datagram()(here);
      },
      ud({ inInit: () => {} }),
    ),
    host1: side(
      async (here) => {
        await here.mustTake();
        while (here.program.memory.read(here.buffer, 1)[0] !== 7) await here.program.cpu.sleep(1e8); // here
      },
      ud({ inInit: receives(1) }),
    ),
  },
];

/** Objects that are destroyed, changed or reused too early. */
const lifetimes: readonly Mistake[] = [
  {
    name: 'a message is expected that nothing sends, after a QP with an unsignalled request is gone',
    cause: 'no-more-messages',
    says: /polls CQ .*, and no request that could complete there is under way: 0 receives completed/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE, flags: 0 });
      await rests(here);
      await destroyQp(here.qp);
      await here.take(); // here
    }),
    host1: side(idle),
  },
  {
    name: 'the QP is destroyed, and the completions of its requests awaited',
    cause: 'own-qp-destroyed',
    says: /polls CQ .* for 1 request of QP .*, which it destroyed at/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE }); // here
      await destroyQp(here.qp);
      await here.take();
    }),
    host1: side(idle),
  },
  {
    name: 'the QP is reset, and the completions of its requests awaited',
    cause: 'own-qp-destroyed',
    says: /polls CQ .* for 1 request of QP .*, which it reset at/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE }); // here
      await modifyQp(here.qp, { qpState: IBV_QPS_RESET }, IBV_QP_STATE);
      await here.take();
    }),
    host1: side(idle),
  },
  {
    name: 'a request is posted to a QP after it was destroyed',
    cause: 'post-to-destroyed-qp',
    says: /for 1 request of QP .*, posted after it had destroyed the QP at/,
    host0: side(async (here) => {
      await destroyQp(here.qp);
      here.send({ opcode: IBV_WR_RDMA_WRITE });
      await here.take();
    }),
    host1: side(idle),
  },
  {
    name: 'the device fails, and completions of before are awaited',
    cause: 'device-fatal',
    says: /whose device was reset at .* \(injected: catastrophic/,
    faults: [{ catastrophic: 0xdead, at: '8ms' }],
    host0: side(async (here) => {
      await here.program.cpu.sleep(5e9);
      await write()(here);
    }),
    host1: side(waits),
  },
  {
    name: 'the device refuses a command',
    cause: 'verb-refused',
    says: /was refused a call: ibv_create_cq/,
    networks: ib,
    faults: [{ command: 'SW2HW_CQ', nth: 1, status: 'BAD_RES_STATE' }],
    host0: side(idle),
    host1: side(idle),
  },
  {
    name: 'the device refuses a command of the driver',
    cause: 'driver-failed',
    says: /The driver of host 0 did not start: .* SW2HW_CQ ended with status BAD_RES_STATE/,
    networks: roce,
    faults: [{ command: 'SW2HW_CQ', nth: 1, status: 'BAD_RES_STATE' }],
    host0: side(idle),
    host1: side(idle),
  },
  {
    name: 'the host does not answer a read of the payload',
    cause: 'local-unreadable',
    says: /needs memory that the host did not answer for/,
    faults: [{ read: 'payloadRead', nth: 1, answer: 'poisoned' }],
    host0: side(write({ bytes: 1024 })),
    host1: side(waits),
  },
  {
    name: 'the own memory is deregistered with a request under way',
    cause: 'local-key-deregistered',
    says: /uses lkey .*, whose region host 0 deregistered/,
    host0: side(
      async (here) => {
        here.send({ opcode: IBV_WR_RDMA_READ, bytes: 1 << 20 }); // here
        await deregMr(here.mr);
        await here.take();
        await here.signal();
      },
      { bufferBytes: 1 << 20 },
    ),
    host1: side(waits, { bufferBytes: 1 << 20 }),
  },
  {
    name: 'the peer deregisters memory with a WRITE under way',
    cause: 'remote-key-deregistered',
    says: /whose region host 1 deregistered at/,
    host0: side(
      async (here) => {
        await here.signal('go');
        for (let posted = 0; posted < 4; posted++) here.send({ opcode: IBV_WR_RDMA_WRITE, bytes: 1 << 20 }); // here
        for (let taken = 0; taken < 4; taken++) await here.take();
        await here.signal();
      },
      { bufferBytes: 1 << 20 },
    ),
    host1: side(
      async (here) => {
        await here.awaitSignal('go');
        await here.program.cpu.sleep(2e8);
        await deregMr(here.mr);
        await here.awaitSignal();
      },
      { bufferBytes: 1 << 20 },
    ),
  },
  {
    name: 'the receive’s memory is deregistered before the message',
    cause: 'receive-key-deregistered',
    says: /A receive of QP .* uses lkey .*, whose region host 1 deregistered/,
    host0: side(async (here) => {
      await here.awaitSignal('gone');
      await sendAndTake(here);
    }),
    host1: side(async (here) => {
      here.receive();
      await deregMr(here.mr);
      await here.signal('gone');
      await here.awaitSignal();
    }),
  },
  {
    name: 'the region was moved by rereg_mr, and the peer uses the old address',
    cause: 'remote-wrong-address',
    says: /lies outside of the region/,
    host0: side(async (here) => {
      await here.awaitSignal('moved');
      await write()(here);
    }),
    host1: side(async (here) => {
      const other = here.program.memory.map(4096);
      await reregMr(here.mr, IBV_REREG_MR_CHANGE_TRANSLATION, null, other, 4096, 0);
      await here.signal('moved');
      await here.awaitSignal();
    }),
  },
  {
    name: 'rereg_mr took the right of WRITE away',
    cause: 'remote-right-missing',
    says: /needs remote write/,
    host0: side(async (here) => {
      await here.awaitSignal('changed');
      await write()(here);
    }),
    host1: side(async (here) => {
      const access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
      await reregMr(here.mr, IBV_REREG_MR_CHANGE_ACCESS, null, 0, 0, access);
      await here.signal('changed');
      await here.awaitSignal();
    }),
  },
  {
    name: 'the key of a window that is not bound',
    cause: 'remote-key-invalid',
    says: /the window is not bound/,
    host0: side(async (here) => {
      const rkey = Number(await here.program.exchange.take('window'));
      await write({ rkey })(here);
    }),
    host1: side(async (here) => {
      const mw = await allocMw(here.pd, IBV_MW_TYPE_1);
      await here.program.exchange.put('window', mw.rkey);
      await here.awaitSignal();
    }),
  },
  {
    name: 'the key of a window of before its bind',
    cause: 'remote-key-stale',
    says: /uses rkey .*; the (region|window) there has key/,
    host0: side(async (here) => {
      const rkey = Number(await here.program.exchange.take('window'));
      await write({ rkey })(here);
    }),
    host1: side(
      async (here) => {
        const mw = await allocMw(here.pd, IBV_MW_TYPE_1);
        const { rkey } = mw;
        await bind(here, mw, 4096);
        await here.program.exchange.put('window', rkey);
        await here.awaitSignal();
      },
      { access: allAccess | IBV_ACCESS_MW_BIND },
    ),
  },
  {
    name: 'the peer writes beyond a window',
    cause: 'remote-too-short',
    says: /reaches 64 bytes beyond/,
    host0: side(async (here) => {
      const rkey = Number(await here.program.exchange.take('window'));
      await write({ rkey, bytes: 128 })(here);
    }),
    host1: side(
      async (here) => {
        const mw = await allocMw(here.pd, IBV_MW_TYPE_1);
        await bind(here, mw, 64);
        await here.program.exchange.put('window', mw.rkey);
        await here.awaitSignal();
      },
      { access: allAccess | IBV_ACCESS_MW_BIND },
    ),
  },
  {
    name: 'the region is deregistered while a window is bound to it',
    cause: 'verb-refused',
    says: /was refused a call: ibv_dereg_mr/,
    host0: side(
      async (here) => {
        await bind(here, await allocMw(here.pd, IBV_MW_TYPE_1), 64);
        await deregMr(here.mr);
      },
      { access: allAccess | IBV_ACCESS_MW_BIND },
    ),
    host1: side(idle),
  },
  {
    name: 'events are not acknowledged, and the CQ is destroyed',
    cause: 'events-unacknowledged',
    says: /destroys a CQ of which 1 event was taken and not acknowledged/,
    evidence: { events: 1 },
    host0: side(
      async (here) => {
        reqNotifyCq(here.cq, 0);
        here.send({ opcode: IBV_WR_RDMA_WRITE });
        await getCqEvent(here.channel!);
        await here.mustTake();
        await destroyQp(here.qp);
        await destroyCq(here.cq);
      },
      { hasChannel: true },
    ),
    host1: side(idle),
  },
  {
    name: 'the buffer of a READ is sent on without a fence',
    cause: 'fence-missing',
    says: /The WRITE on QP .* sends the buffer of a READ that was not completed .* without IBV_SEND_FENCE/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_READ, bytes: 4096 });
      here.send({ opcode: IBV_WR_RDMA_WRITE, bytes: 4096 }); // here
      await here.mustTake();
      await here.mustTake();
      await here.signal();
    }, {}),
    host1: side(waits),
  },
  {
    name: 'the buffer of a READ is sent on inline, where a fence does not help',
    cause: 'fence-missing',
    says: /The WRITE on QP .* sends the buffer of a READ that was not completed .* inline data are copied then/,
    host0: side(
      async (here) => {
        here.send({ opcode: IBV_WR_RDMA_READ, bytes: 64 });
        const flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE | IBV_SEND_INLINE;
        here.send({ opcode: IBV_WR_RDMA_WRITE, flags, bytes: 64 }); // here
        await here.mustTake();
        await here.mustTake();
        await here.signal();
      },
      { cap: { maxInlineData: 64 } },
    ),
    host1: side(waits),
  },
  {
    name: 'a buffer is filled again before its SEND has completed',
    cause: 'buffer-in-use',
    watch: 'races',
    says: /does write to 64 bytes .* which the device reads for work request 1/,
    host0: side(async (here) => {
      here.send({ bytes: 4096 });
      here.program.memory.write(here.buffer, new Uint8Array(64)); // here
      await here.mustTake();
      await here.signal();
    }, {}),
    host1: side(waits, { inInit: receives(4, 4096) }),
  },
  {
    name: 'the data of a READ are used before its completion',
    cause: 'buffer-in-use',
    isNote: true,
    watch: 'races',
    says: /does read to .* which the device writes/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_READ, bytes: 4096 });
      here.program.memory.read(here.buffer, 8); // here
      await here.mustTake();
      await here.signal();
    }),
    host1: side(waits),
  },
];

/** Attributes and limits. */
const attributes: readonly Mistake[] = [
  {
    name: 'the rkey is left 0',
    cause: 'remote-key-unknown',
    says: /uses rkey 0x0, which no region of a program of host 1 ever had/,
    evidence: { key: 0 },
    host0: side(write({ rkey: 0 })),
    host1: side(waits),
  },
  {
    name: 'dest_qp_num is left 0',
    cause: 'wrong-qpn',
    says: /sends to QP 0x0/,
    host0: side(write(), { rtr: () => ({ destQpNum: 0 }) }),
    host1: side(waits),
  },
  {
    name: 'the peer’s QP is in INIT, and timeout is 0',
    cause: 'peer-qp-state',
    says: /was in INIT.*timeout 0/,
    host0: side(write(), { rts: { timeout: 0 } }),
    host1: side(waits, { stopsIn: 'INIT' }),
  },
  {
    name: 'a switch or adapter damages each packet',
    cause: 'packets-lost',
    says: /A switch or an adapter damaged packets of .*fired \d+ times/,
    faults: [{ packet: 'corrupted', crc: 'icrc', node: 0, nth: 'every' }],
    networks: ib,
    host0: side(write()),
    host1: side(waits),
  },
  {
    name: 'timeout is 0, and a packet is lost',
    cause: 'packets-lost',
    says: /fired 1 time.*timeout 0/,
    faults: [{ packet: 'lost', node: 0, nth: 1 }],
    networks: ib,
    host0: side(write(), { rts: { timeout: 0 } }),
    host1: side(waits),
  },
  {
    name: 'min_rnr_timer is 0, which is the longest',
    cause: 'rnr-wait',
    isNote: true,
    says: /waited 655.* in 1 RNR NAK.*min_rnr_timer 0/,
    host0: side(sendAndTake, { rts: { rnrRetry: 7 } }),
    host1: side(
      async (here) => {
        await here.program.cpu.sleep(1e9);
        here.receive();
        await here.awaitSignal();
      },
      { rtr: () => ({ minRnrTimer: 0 }) },
    ),
  },
  {
    name: 'both P_Keys are of limited members',
    cause: 'pkey',
    networks: ib,
    says: /P_Key 0x7fff.*both are limited members of the partition/,
    host0: side(async (here) => {
      await smSetPkeys(here.context, 1, 0, [0x7fff]);
      await here.awaitSignal('limited');
      await write()(here);
    }),
    host1: side(async (here) => {
      await smSetPkeys(here.context, 1, 0, [0x7fff]);
      await here.signal('limited');
      await here.awaitSignal();
    }),
  },
  {
    name: 'qp_access_flags lack atomics',
    cause: 'qp-right-missing',
    says: /needs remote atomic/,
    host0: side(write({ opcode: IBV_WR_ATOMIC_FETCH_AND_ADD, bytes: 8 })),
    host1: side(waits, { init: { qpAccessFlags: IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ } }),
  },
  {
    name: 'remote WRITE is asked for without local write',
    cause: 'verb-refused',
    says: /was refused a call: ibv_reg_mr/,
    host0: side(async (here) => {
      await regMr(here.pd, here.buffer, 4096, IBV_ACCESS_REMOTE_WRITE);
    }),
    host1: side(idle),
  },
  {
    name: 'port_num is 2 of a card with one port',
    cause: 'verb-refused',
    says: /was refused a call: ibv_modify_qp/,
    host0: side(idle, { init: { portNum: 2 } }),
    host1: side(idle),
  },
  {
    name: 'isGlobal is 0 on Ethernet',
    cause: 'verb-refused',
    networks: roce,
    says: /was refused a call: ibv_modify_qp/,
    host0: side(idle, { rtr: (peer) => ({ ahAttr: { dlid: peer.lid, isGlobal: 0, portNum: 1 } }) }),
    host1: side(idle),
  },
  {
    name: 'dgid of another port on InfiniBand',
    cause: 'wrong-gid-path',
    networks: ib,
    says: /GID/,
    host0: side(write(), {
      rtr: (peer) => ({
        ahAttr: {
          ...pathOf({ isEthernet: true, gidIndex: 0 }, { ...peer, gid: strangeGid }),
          dlid: peer.lid,
        },
      }),
    }),
    host1: side(waits),
  },
  {
    name: 'a message longer than 2^31 bytes',
    cause: 'message-too-long',
    says: /longer than a message may be/,
    host0: side(
      async (here) => {
        here.send({ opcode: IBV_WR_RDMA_WRITE, bytes: 0x5000_0000, numSge: 2 }); // here
        await here.take();
        await here.signal();
      },
      { cap: { maxSendSge: 2 } },
    ),
    host1: side(waits),
  },
  {
    name: 'num_sge is more than the list has',
    cause: 'post-refused',
    says: /returned EINVAL for a WRITE with 2 buffers/,
    host0: side(
      (here) => {
        const error = postSend(here.qp, {
          ...{ wrId: 1, opcode: IBV_WR_RDMA_WRITE, sendFlags: IBV_SEND_SIGNALED, numSge: 2 },
          sgList: [{ addr: here.buffer, length: 8, lkey: here.mr.lkey }],
          wr: { rdma: { remoteAddr: here.peer.address, rkey: here.peer.rkey } },
        });
        if (error !== 0) throw new Error('post failed');
      },
      { cap: { maxSendSge: 2 } },
    ),
    host1: side(idle),
  },
  {
    name: 'a receive of more buffers than max_recv_sge',
    cause: 'too-many-segments',
    says: /ibv_post_recv returned EINVAL: the request has 40 buffers/,
    host0: side((here) => {
      const sgList = Array.from({ length: 40 }, () => ({ addr: here.buffer, length: 8, lkey: here.mr.lkey }));
      if (postRecv(here.qp, { wrId: 1, sgList, numSge: 40 }) !== 0) throw new Error('post failed');
    }),
    host1: side(idle),
  },
  {
    name: 'a SEND with Invalidate names a key of nobody',
    cause: 'invalidate-refused',
    node: 1,
    says: /A SEND with Invalidate to QP .* names a key that may not be invalidated there/,
    host0: side(async (here) => {
      postSend(here.qp, {
        ...{ wrId: 1, opcode: IBV_WR_SEND_WITH_INV, sendFlags: IBV_SEND_SIGNALED, numSge: 1 },
        sgList: [{ addr: here.buffer, length: 8, lkey: here.mr.lkey }],
        invalidateRkey: 0x7700,
      });
      await here.take();
      await here.signal();
    }),
    host1: side(later, wellConnected),
  },
  {
    name: 'a key of nobody is invalidated by its own side',
    cause: 'key-operation-refused',
    says: /refused LOCAL_INV/,
    host0: side(async (here) => {
      postSend(here.qp, {
        ...{ wrId: 1, opcode: IBV_WR_LOCAL_INV, sendFlags: IBV_SEND_SIGNALED, numSge: 0, sgList: [] },
        invalidateRkey: 0x7700,
      });
      await here.take();
      await here.signal();
    }),
    host1: side(waits),
  },
  {
    name: 'a key is used after its invalidation',
    cause: 'local-key-invalid',
    says: /is allocated and not valid now: it was invalidated/,
    host0: side(async (here) => {
      postSend(here.qp, {
        ...{ wrId: 1, opcode: IBV_WR_LOCAL_INV, sendFlags: IBV_SEND_SIGNALED, numSge: 0, sgList: [] },
        invalidateRkey: here.mr.rkey,
      });
      await here.mustTake();
      await write()(here);
    }),
    host1: side(waits),
  },
];

/** Completions, events and receives. */
const notifications: readonly Mistake[] = [
  {
    name: 'a CQ is polled that no QP uses',
    cause: 'other-cq',
    says: /with 1 completion in CQ .*, which it never polled; no QP uses CQ/,
    evidence: { unpolled: 1 },
    host0: side(async (here) => {
      const other = await createCq(here.context, 16);
      here.send({ opcode: IBV_WR_RDMA_WRITE });
      await here.take(other); // here
    }),
    host1: side(waits),
  },
  {
    name: 'a loop of the program’s own polls for an unsignalled request',
    cause: 'unsignalled',
    says: /polls CQ .* for 1 request of QP .* posted unsignalled/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE, flags: 0 });
      while ((await pollCq(here.cq, 1, [new IbvWc()])) === 0) await here.program.cpu.sleep(1e7);
    }),
    host1: side(waits),
  },
  {
    name: 'the receives run out, since none is posted again',
    cause: 'no-receive',
    says: /all 4 posted ones were used/,
    evidence: { receivesPosted: 4, receivesTaken: 4 },
    host0: side(async (here) => {
      for (let sent = 0; sent < 5; sent++) {
        here.send();
        await here.take();
      }
      await here.signal();
    }),
    host1: side(waits, wellConnected),
  },
  {
    name: 'an error number of ibv_post_send is ignored, and the completion awaited',
    cause: 'inline-too-long',
    says: /600 bytes inline/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE, bytes: 600, flags: IBV_SEND_SIGNALED | IBV_SEND_INLINE });
      await here.take();
    }),
    host1: side(waits),
  },
  {
    name: 'the port goes down',
    cause: 'link-down',
    says: /The link of host \d went down at 8 ms/,
    faults: [{ port: 'down', at: '8ms' }],
    host0: side(async (here) => {
      await here.program.cpu.sleep(1e10);
      await write()(here);
    }),
    host1: side(waits),
  },
  {
    name: 'one completion more than requests is awaited',
    cause: 'no-more-completions',
    says: /for one more completion than come: 1 request, 1 of them signalled, has completed/,
    evidence: { requests: 1, signalled: 1 },
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE });
      await here.mustTake();
      await here.mustTake(); // here
    }),
    host1: side(waits),
  },
  {
    name: 'the program waits on a channel of another CQ',
    cause: 'other-channel',
    says: /waits for an event of CQ .*, but the completion of CQ .* raised its event on channel/,
    host0: side(
      async (here) => {
        const channel = await createCompChannel(here.context);
        const other = await createCq(here.context, 16, null, channel);
        reqNotifyCq(other, 0);
        reqNotifyCq(here.cq, 0);
        here.send({ opcode: IBV_WR_RDMA_WRITE });
        await getCqEvent(channel); // here
      },
      { hasChannel: true },
    ),
    host1: side(rests),
  },
  {
    name: 'the limit of a shared receive queue was never armed',
    cause: 'srq-limit-never-armed',
    node: 1,
    says: /limit of its shared receive queue was never armed: IBV_EVENT_SRQ_LIMIT_REACHED/,
    evidence: { limitArms: 0 },
    host0: side(async (here) => {
      await here.awaitSignal('posted');
      for (let sent = 0; sent < 4; sent++) {
        here.send();
        await here.mustTake();
      }
    }),
    host1: side(
      async (here) => {
        receivesShared(here, 8);
        await here.signal('posted');
        for (let taken = 0; taken < 4; taken++) await here.mustTake();
        await getAsyncEvent(here.context); // here
      },
      { srq: sharedQueue },
    ),
  },
  {
    name: 'the limit of a shared receive queue was not armed again after its event',
    cause: 'srq-limit-not-rearmed',
    node: 1,
    says: /was not armed again after its last event: 1 arm, 1 event/,
    evidence: { limitArms: 1, limitEvents: 1 },
    host0: side(async (here) => {
      await here.awaitSignal('posted');
      for (let sent = 0; sent < 8; sent++) {
        here.send();
        await here.mustTake();
      }
    }),
    host1: side(
      async (here) => {
        receivesShared(here, 8);
        await modifySrq(here.qp.srq!, { srqLimit: 6 }, IBV_SRQ_LIMIT);
        await here.signal('posted');
        await getAsyncEvent(here.context);
        await getAsyncEvent(here.context); // here
      },
      { srq: sharedQueue },
    ),
  },
  {
    name: 'an asynchronous event that never comes',
    cause: 'no-async-event',
    says: /asynchronous event/,
    host0: side(async (here) => {
      await getAsyncEvent(here.context);
    }),
    host1: side(idle),
  },
  {
    name: 'a completion is read though ibv_poll_cq returned 0',
    cause: 'buffer-in-use',
    watch: 'races',
    says: /does write to 8 bytes .* until its completion has been polled/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_READ, bytes: 4096 });
      const wc = [new IbvWc()];
      await pollCq(here.cq, 1, wc);
      if (wc[0]!.status !== IBV_WC_SUCCESS) throw new Error('failed');
      here.program.memory.write(here.buffer, new Uint8Array(8)); // here
      await here.program.cpu.sleep(1e9);
      await here.signal();
    }),
    host1: side(waits),
  },
  {
    name: 'receives are posted to another QP',
    cause: 'no-receive',
    says: /none was ever posted/,
    host0: side(sendAndTake),
    host1: side(async (here) => {
      const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
      const other = await createQp(here.pd, { sendCq: here.cq, recvCq: here.cq, qpType: IBV_QPT_RC, cap });
      await modifyQp(
        other,
        { qpState: 1, pkeyIndex: 0, portNum: 1, qpAccessFlags: 0 },
        1 | 0x10 | 0x20 | 0x8,
      );
      postRecv(other, {
        wrId: 1,
        sgList: [{ addr: here.buffer, length: 256, lkey: here.mr.lkey }],
        numSge: 1,
      });
      await here.awaitSignal();
    }),
  },
  {
    name: 'the receive comes after the retries',
    cause: 'receive-late',
    says: /until it was too late/,
    host0: side(sendAndTake),
    host1: side(async (here) => {
      await here.program.cpu.sleep(1e11);
      here.receive();
      await here.awaitSignal();
    }),
  },
  {
    name: 'a request is posted to a QP that an error has ended',
    cause: 'remote-key-unknown',
    says: /uses rkey 0x6600/,
    host0: side(async (here) => {
      here.send({ opcode: IBV_WR_RDMA_WRITE, rkey: 0x6600 });
      await here.take();
      here.send({ opcode: IBV_WR_RDMA_WRITE });
      await here.mustTake();
    }),
    host1: side(idle),
  },
  {
    name: 'pages of the peer are absent, and rnr_retry is 0',
    cause: 'page-fault-rnr',
    says: /Pages of an on-demand region of host 1 were absent/,
    host0: side(write(), { rts: { rnrRetry: 0 } }),
    host1: side(waits, { access: allAccess | IBV_ACCESS_ON_DEMAND }),
  },
  {
    name: 'an XRC request names a queue of another domain',
    cause: 'xrc-wrong-srq',
    says: /The SEND of QP .* names a shared receive queue that is not of the XRC domain/,
    host0: side(async (here) => {
      const cap = { maxSendWr: 4, maxRecvWr: 4, maxSendSge: 1, maxRecvSge: 1 };
      const parts = { pd: here.pd, sendCq: here.cq, qpType: IBV_QPT_XRC_SEND, cap };
      const qp = await createQpEx(here.context, parts);
      await here.program.exchange.put('initiator', qp.qpNum);
      const target = Number(await here.program.exchange.take('target'));
      const srqn = Number(await here.program.exchange.take('srq'));
      await connectInitiator(qp, xrcPeer(here, target), 0, xrcAttributes);
      await here.awaitSignal('ready');
      postSend(qp, {
        ...{ wrId: 1, opcode: IBV_WR_SEND, sendFlags: IBV_SEND_SIGNALED, numSge: 1 },
        sgList: [{ addr: here.buffer, length: 8, lkey: here.mr.lkey }],
        qpType: { xrc: { remoteSrqn: srqn } },
      });
      await here.take();
      await here.signal();
    }),
    host1: side(async (here) => {
      const [own, other] = [
        await openXrcd(here.context, { fd: 1, oflags: O_CREAT }),
        await openXrcd(here.context, { fd: 2, oflags: O_CREAT }),
      ];
      const attr = { maxWr: 8, maxSge: 1 };
      const parts = { pd: here.pd, attr, srqType: IBV_SRQT_XRC, xrcd: other, cq: here.cq };
      const srq = await createSrqEx(here.context, parts);
      const target = await createQpEx(here.context, { qpType: IBV_QPT_XRC_RECV, xrcd: own });
      await here.program.exchange.put('target', target.qpNum);
      await here.program.exchange.put('srq', getSrqNum(srq));
      const initiator = Number(await here.program.exchange.take('initiator'));
      await connectTarget(target, xrcPeer(here, initiator), xrcAttributes);
      await here.signal('ready');
      await here.awaitSignal();
    }),
  },
];

const xrcAttributes = { ...rcDefaults, pathMtu: IBV_MTU_1024 };

/** Address of a QP of the peer, for the transitions of XRC. */
const xrcPeer = ({ peer: { lid, gid }, gidIndex, isEthernet }: Side, qpNum: number) => ({
  ...{ qpNum, psn: 0, lid: isEthernet ? 0 : lid },
  ...(isEthernet ? { gid, sgidIndex: gidIndex } : {}),
});

export const furtherMistakes: readonly Mistake[] = [
  ...dropped,
  ...lifetimes,
  ...attributes,
  ...notifications,
];
