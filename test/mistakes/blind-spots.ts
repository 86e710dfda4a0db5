/**
 * Mistakes that stories could not find so far: queue pairs in every state, arm requests, addresses with high bits, PSNs and
 * retries, partitions, sockets.
 */
import type { Mistake } from './mistake.ts';

export const blindSpotMistakes: readonly Mistake[] = [
  {
    name: 'receive-taken-in-reset',
    what: 'A receive is taken in RESET, as in INIT.',
    kind: 'check skipped',
    scene: 'posted-in-any-state',
    file: 'userlib/post-recv.ts',
    find: 'let error = ring === null || qp.state === QpStateVerb.IBV_QPS_RESET ? EINVAL : 0;',
    replace: 'let error = ring === null ? EINVAL : 0;',
  },
  {
    name: 'send-taken-in-rtr',
    what: 'A send is taken as soon as the queue pair is ready to receive.',
    kind: 'check skipped',
    scene: 'posted-in-any-state',
    file: 'userlib/post-send.ts',
    find: 'if (state !== IBV_QPS_RTS && state !== IBV_QPS_SQD',
    replace: 'if (state !== QpStateVerb.IBV_QPS_RTR && state !== IBV_QPS_RTS && state !== IBV_QPS_SQD',
  },
  {
    name: 'send-refused-in-error',
    what: 'A send is refused in ERR, where it is to be flushed.',
    kind: 'check skipped',
    scene: 'posted-in-any-state',
    file: 'userlib/post-send.ts',
    find: 'state !== IBV_QPS_SQE && state !== IBV_QPS_ERR) {',
    replace: 'state !== IBV_QPS_SQE) {',
  },
  {
    name: 'send-refused-in-sqd',
    what: 'A send is refused while the send queue is drained.',
    kind: 'check skipped',
    scene: 'posted-in-any-state',
    file: 'userlib/post-send.ts',
    find: 'state !== IBV_QPS_RTS && state !== IBV_QPS_SQD &&',
    replace: 'state !== IBV_QPS_RTS &&',
  },
  {
    name: 'sqd-sends-on',
    what: 'A send queue that must stand still sends what is posted.',
    kind: 'check skipped',
    scene: 'posted-in-any-state',
    file: 'hw/hca/requester/requester.ts',
    find: `    if (pair.state === SQD) return PARKED_DRAINING;
`,
    replace: '',
  },
  {
    name: 'sqd-work-forgotten',
    what: 'Requests posted while the send queue stood still are not begun when it is started again.',
    kind: 'lost event',
    scene: 'posted-in-any-state',
    file: 'hw/hca/lifecycle/data-path-objects.ts',
    find: `    if (pair.parkedFor === PARKED_DRAINING) this.#ports.scheduler.unpark(pair, cycle + 1);
`,
    replace: '',
  },
  {
    name: 'doorbell-in-error-unheard',
    what: 'A doorbell of a queue pair in error flushes nothing.',
    kind: 'lost event',
    scene: 'posted-in-any-state',
    file: 'hw/hca/send-queue/work-arrivals.ts',
    find: `    if (isFlushed(pair)) this.#ports.flusher.resume(pair.slot, cycle);
    else this`,
    replace: '    if (!isFlushed(pair)) this',
  },
  {
    name: 'flushed-as-local-error',
    what: 'Flushed requests have the syndrome of a local length error.',
    kind: 'wrong status',
    scene: 'posted-in-any-state',
    file: 'hw/hca/lifecycle/flusher.ts',
    find: 'completion.syndrome = CqeSyndrome.WR_FLUSH_ERR;',
    replace: 'completion.syndrome = CqeSyndrome.LOCAL_LENGTH_ERR;',
  },
  {
    name: 'error-waits-for-answers',
    what: 'A queue pair that software brings to ERR sends until its peer answers.',
    kind: 'check skipped',
    scene: 'posted-in-any-state',
    file: 'hw/hca/lifecycle/data-path-objects.ts',
    find: `    this.#ports.errors.fail(slot, this.#domain.cycle);
    this.#ports.responses`,
    replace: `    if (this.#qps.rows[slot]!.recordHead === noRecord) this.#ports.errors.fail(slot, this.#domain.cycle);
    this.#ports.responses`,
  },
  {
    name: 'reset-keeps-send-ring',
    what: 'The library restarts a queue pair with its former send counters.',
    kind: 'counter not reset',
    scene: 'posted-in-any-state',
    file: 'userlib/qp.ts',
    find: `  qp.sendRing.reset();
`,
    replace: '',
  },
  {
    name: 'ownership-not-initialised',
    what: 'WQEs of the life before look posted after a reset.',
    kind: 'counter not reset',
    scene: 'posted-in-any-state',
    file: 'userlib/qp.ts',
    find: `      qp.sendRing.initialiseOwnership(context.platform.memory);
`,
    replace: '',
  },
  {
    name: 'first-psn-not-taken',
    what: 'The responder expects the PSN of its life before at RTR.',
    kind: 'counter not reset',
    scene: 'extreme-attributes',
    file: 'hw/hca/ibta/state/ibta-state.ts',
    find: '    this.expectedPsn = psn;\n',
    replace: '    this.expectedPsn = psnAdd(psn, 1);\n',
  },
  {
    name: 'awaited-psn-one-early',
    what: 'The first packet of a connection counts as answered from the beginning on.',
    kind: 'comparison off by one',
    scene: 'unanswered',
    file: 'hw/hca/ibta/state/ibta-state.ts',
    find: '    this.lastAckedPsn = psnAdd(psn, -1);',
    replace: '    this.lastAckedPsn = psn;',
  },
  {
    name: 'retries-not-loaded',
    what: 'RNR retries are as many as those of time-outs.',
    kind: 'counter not reset',
    scene: 'late-receives',
    file: 'hw/hca/connectx3/qp-context.ts',
    find: `  pair.rnrRetriesLeft = pair.rnrRetryCountMax;
  pair.ackTimeoutCode`,
    replace: `  pair.rnrRetriesLeft = pair.retryCountMax;
  pair.ackTimeoutCode`,
  },
  {
    name: 'plain-raises-solicited',
    what: 'A CQ armed for solicited completions reports any.',
    kind: 'check skipped',
    scene: 'armed-in-any-order',
    file: 'hw/hca/completion/cq-arm.ts',
    find: '(queue.armState === CQ_ARMED_SOLICITED && counts);',
    replace: 'queue.armState === CQ_ARMED_SOLICITED;',
  },
  {
    name: 'event-leaves-cq-armed',
    what: 'A CQ stays armed when its event has fired.',
    kind: 'counter not reset',
    scene: 'armed-in-any-order',
    file: 'hw/hca/completion/cq-arm.ts',
    find: `    queue.armState = CQ_NOT_ARMED;
    queue.lastNotified`,
    replace: '    queue.lastNotified',
  },
  {
    name: 'failure-is-not-solicited',
    what: 'A CQ armed for solicited completions does not report a failure.',
    kind: 'check skipped',
    scene: 'armed-in-any-order',
    file: 'hw/hca/completion/completion-writer.ts',
    find: 'posted.isSolicited === 1 || posted.syndrome !== 0, cycle);',
    replace: 'posted.isSolicited === 1, cycle);',
  },
  {
    name: 'arm-commands-exchanged',
    what: 'The library asks for any completion where solicited ones are wanted, and the other way round.',
    kind: 'wrong status',
    scene: 'armed-in-any-order',
    file: 'userlib/poll-cq.ts',
    find: 'solicitedOnly !== 0 ? CqArmCommand.SOLICITED : CqArmCommand.NEXT;',
    replace: 'solicitedOnly === 0 ? CqArmCommand.SOLICITED : CqArmCommand.NEXT;',
  },
  {
    name: 'arm-sequence-stands',
    what: 'The sequence number of arm requests does not move with the events.',
    kind: 'counter not reset',
    scene: 'armed-in-any-order',
    file: 'userlib/events.ts',
    find: `    cq.ring.armSequence++;
`,
    replace: '',
  },
  {
    name: 'solicited-by-fence-bit',
    what: 'The library sets no solicited bit in fenced requests, nor in others.',
    kind: 'wrong status',
    scene: 'armed-in-any-order',
    file: 'userlib/wqe-writer.ts',
    find: '((flags & IBV_SEND_SOLICITED) !== 0 ? solicitedBit : 0)',
    replace: '((flags & IBV_SEND_FENCE) !== 0 ? solicitedBit : 0)',
  },
  {
    name: 'solicited-on-first-packet',
    what: 'The solicited event is asked for by the first packet of a message.',
    kind: 'wrong stage',
    scene: 'solicited-events',
    file: 'hw/hca/ibta/requests/request-headers.ts',
    find: 'const solicited = isLast && request.isSolicited === 1 ? FLAG_SOLICITED : 0;',
    replace: 'const solicited = !isLast && request.isSolicited === 1 ? FLAG_SOLICITED : 0;',
  },
  {
    name: 'seen-event-fires-again',
    what: 'An arm request finds what an earlier event reported.',
    kind: 'check skipped',
    scene: 'armed-in-any-order',
    file: 'hw/hca/completion/cq-arm.ts',
    find: 'isBeyond(latest, consumer) && isBeyond(latest, queue.lastNotified)',
    replace: 'isBeyond(latest, consumer)',
  },
  {
    name: 'region-begins-in-page',
    what: 'A region is open from the beginning of its first page on.',
    kind: 'comparison off by one',
    scene: 'high-addresses',
    file: 'hw/hca/memory/key-check.ts',
    find: 'if (offset < 0 || offset + lengthBytes > cache.length[line]!) return OUT_OF_BOUNDS;',
    replace:
      'if (offset < -cache.startInPage[line]! || offset + lengthBytes > cache.length[line]!) return OUT_OF_BOUNDS;',
  },
  {
    name: 'bounds-by-low-word',
    what: 'Bounds of a region are checked by the lower 32 bits of the address.',
    kind: 'wrong address',
    scene: 'high-addresses',
    file: 'hw/hca/memory/key-check.ts',
    find: 'const offset = addressDistance(cache.start[line]!, cache.startTop[line]!, address, addressTop);',
    replace: 'const offset = (address - cache.start[line]!) % 2 ** 32;',
  },
  {
    name: 'bounds-by-40-bits',
    what: 'Bounds of a region are checked by the lower 40 bits of the address.',
    kind: 'wrong address',
    scene: 'high-addresses',
    file: 'hw/hca/memory/key-check.ts',
    find: `    const offset = addressDistance(cache.start[line]!, cache.startTop[line]!, address, addressTop);
    if`,
    replace: `    const offset = addressDistance(cache.start[line]! % 2 ** 40, cache.startTop[line]!, address % 2 ** 40, addressTop);
    if`,
  },
  {
    name: 'remote-address-masked',
    what: 'Bit 46 of a remote address is lost when its WQE is decoded.',
    kind: 'wrong address',
    scene: 'high-addresses',
    file: 'hw/hca/connectx3/wqe-decoder.ts',
    find: '    request.remoteAddress = addressAt(view, at + next + remoteAddressPlace);',
    replace: '    request.remoteAddress = addressAt(view, at + next + remoteAddressPlace) % 2 ** 46;',
  },
  {
    name: 'page-remembered-below-start',
    what: 'A page that was looked up before is open in front of the region.',
    kind: 'check skipped',
    scene: 'high-addresses',
    file: 'hw/hca/memory/translation-port.ts',
    find: `      address < this.firstByte ||
`,
    replace: '',
  },
  {
    name: 'mtt-entry-of-eight',
    what: 'The page of a region is taken from a line of four entries.',
    kind: 'wrong address',
    scene: 'high-addresses',
    file: 'hw/hca/memory/mtt-walk.ts',
    find: '((entryOffset / TRANSLATION_ENTRY_BYTES) & 7)]!',
    replace: '((entryOffset / TRANSLATION_ENTRY_BYTES) & 3)]!',
  },
  {
    name: 'last-byte-not-of-region',
    what: 'A region is one byte shorter than it was registered.',
    kind: 'comparison off by one',
    scene: 'high-addresses',
    file: 'hw/hca/memory/key-check.ts',
    find: 'offset + lengthBytes > cache.length[line]!) return OUT_OF_BOUNDS;',
    replace: 'offset + lengthBytes >= cache.length[line]!) return OUT_OF_BOUNDS;',
  },
  {
    name: 'nak-acknowledges-itself',
    what: 'A NAK acknowledges the request that it refuses.',
    kind: 'comparison off by one',
    scene: 'lost-packets',
    file: 'hw/hca/ibta/requests/acknowledgements.ts',
    find: `if (!this.#completeThrough(pair, (psn - 1) & PSN_MASK, cycle)) return WAIT;
    //`,
    replace: `if (!this.#completeThrough(pair, psn, cycle)) return WAIT;
    //`,
  },
  {
    name: 'rnr-retries-not-refilled',
    what: 'RNR retries are not full again after progress.',
    kind: 'counter not reset',
    scene: 'late-receives',
    file: 'hw/hca/ibta/requests/retry-timers.ts',
    find: `    pair.rnrRetriesLeft = pair.rnrRetryCountMax;
  }`,
    replace: '  }',
  },
  {
    name: 'retries-not-refilled',
    what: 'Retries are not full again after progress.',
    kind: 'counter not reset',
    scene: 'unanswered',
    file: 'hw/hca/ibta/requests/retry-timers.ts',
    find: `    pair.retriesLeft = pair.retryCountMax;
    pair.rnr`,
    replace: '    pair.rnr',
  },
  {
    name: 'one-retry-too-many',
    what: 'A connection gives up after one attempt more than its retry count.',
    kind: 'comparison off by one',
    scene: 'unanswered',
    file: 'hw/hca/ibta/requests/acknowledgements.ts',
    find: `    if (pair.retriesLeft === 0) {
      pair.recordHead`,
    replace: `    if (pair.retriesLeft < 0) {
      pair.recordHead`,
  },
  {
    name: 'duplicate-by-absolute-psn',
    what: 'A PSN below the expected one is a duplicate, also where they count around.',
    kind: 'comparison off by one',
    scene: 'lost-packets',
    file: 'hw/hca/ibta/responder/request-checks.ts',
    find: `const distance = psnDistance(psn, state.expectedPsn);
    if (pair.opcodeBase`,
    replace: `const distance = psn - state.expectedPsn;
    if (pair.opcodeBase`,
  },
  {
    name: 'gap-nak-after-its-answer',
    what: 'A NAK of a gap leaves after the answer of what it asked for.',
    kind: 'wrong order',
    scene: 'masked-atomics',
    file: 'hw/hca/ibta/responder/response-engine.ts',
    find: 'if (hasAck === 0 || distance > 0 || (distance === 0 && ackSyndrome === -1)) return;',
    replace: 'if (hasAck === 0 || ackSyndrome !== -1 || distance >= 0) return;',
  },
  {
    name: 'partition-by-index-zero',
    what: 'Packets carry the first P_Key of the table, whatever the queue pair names.',
    kind: 'wrong address',
    scene: 'partitions',
    file: 'hw/hca/ibta/packets/transmitter.ts',
    find: 'const pkey = address.pkeys[pair.pkeyIndex]! | pair.serviceLevelBits;',
    replace: 'const pkey = address.pkeys[0]! | pair.serviceLevelBits;',
  },
  {
    name: 'partition-violations-uncounted',
    what: 'Packets with a wrong P_Key are dropped and not counted.',
    kind: 'counter not reset',
    scene: 'partitions',
    file: 'hw/hca/ibta/receiver/receiver.ts',
    find: `    packet.address.countPkeyViolation();
    return false;`,
    replace: '    return false;',
  },
  {
    name: 'limited-members-meet',
    what: 'Two limited members of a partition communicate.',
    kind: 'check skipped',
    scene: 'partitions',
    file: 'hw/management/is-same-partition.ts',
    find: '((left | right) & PKEY_FULL_MEMBER) !== 0',
    replace: '(left | right | PKEY_FULL_MEMBER) !== 0',
  },
  {
    name: 'partitions-of-14-bits',
    what: 'The highest bit of the partition, below that of membership, is not compared.',
    kind: 'comparison off by one',
    scene: 'partitions',
    file: 'hw/management/is-same-partition.ts',
    find: '(left & PKEY_BASE_MASK) === (right & PKEY_BASE_MASK) &&',
    replace: '(left & 0x3fff) === (right & 0x3fff) &&',
  },
  {
    name: 'own-partition-by-index-zero',
    what: 'Packets of a connection are compared with the first P_Key of the table.',
    kind: 'wrong address',
    scene: 'partitions',
    file: 'hw/hca/ibta/receiver/receiver.ts',
    find: 'isSamePartition(packet.address.pkeys[pair.pkeyIndex]!, packet.word(place))',
    replace: 'isSamePartition(packet.address.pkeys[0]!, packet.word(place))',
  },
  {
    name: 'datagram-partition-of-first-entry',
    what: 'Datagrams carry the first P_Key of the table, whatever the queue pair names.',
    kind: 'wrong address',
    scene: 'partitions',
    file: 'hw/hca/connectx3/datagram-decoder.ts',
    find: 'pkeyOf(address, pair.pkeyIndex) |',
    replace: 'pkeyOf(address, 0) |',
  },
  {
    name: 'partition-table-set-once',
    what: 'An entry of the P_Key table keeps the value that it was first set to.',
    kind: 'check skipped',
    scene: 'partitions',
    file: 'hw/hca/port/subnet-management-agent.ts',
    find: 'if (entry >= port.pkeys.length || port.pkeys[entry] === pkey) return;',
    replace: 'if (entry >= port.pkeys.length || port.pkeys[entry] !== 0) return;',
  },
  {
    name: 'old-translation-cached',
    what: 'The device is not told to forget what it has cached when a region is registered again.',
    kind: 'check skipped',
    scene: 'registered-again',
    file: 'driver/mr.ts',
    find: `  await device.commands.execute(cpu, 'SYNC_TPT');
`,
    replace: '',
  },
  {
    name: 'old-translation-kept',
    what: 'A region that is registered again keeps the entry of its old translation.',
    kind: 'wrong address',
    scene: 'registered-again',
    file: 'driver/mr.ts',
    find: `    fields.mttAddress.set(view, 0, mttAddress);
`,
    replace: '',
  },
  {
    name: 'old-rights-kept',
    what: 'A region that is registered again keeps its rights.',
    kind: 'check skipped',
    scene: 'registered-again',
    file: 'driver/mr.ts',
    find: '(access & flag) !== 0 ? 1 : 0);',
    replace: 'fields[name].get(view, 0) | ((access & flag) !== 0 ? 1 : 0));',
  },
  {
    name: 'old-pages-stay-pinned',
    what: 'Pages of a region stay pinned when it is registered again with others.',
    kind: 'resource not returned',
    scene: 'registered-again',
    file: 'driver/mr.ts',
    find: `    process.unpin(cpu, old);
  }`,
    replace: '  }',
  },
  {
    name: 'registered-again-under-way',
    what: 'A region is changed while accesses by its old registration are under way.',
    kind: 'fence left out',
    scene: 'registered-again',
    file: 'driver/mr.ts',
    find: `  await takeBack(cpu, device, slot);
  region.isEnabled = false;`,
    replace: '  region.isEnabled = false;',
  },
  {
    name: 'stale-request-unanswered',
    what: 'A request by a QP that has a connection ends that connection, and is not refused.',
    kind: 'lost event',
    scene: 'reconnects',
    file: 'driver/cm/connection-manager.ts',
    find: `      refuse(RejectReason.STALE_CONN);
`,
    replace: '',
  },
  {
    name: 'stale-connection-stays',
    what: 'A connection that a request has shown to be stale stays, and has all later requests refused.',
    kind: 'resource not returned',
    scene: 'reconnects',
    file: 'driver/cm/connection-manager.ts',
    find: `      refuse(RejectReason.STALE_CONN);
      return old.becomeStale(cpu);`,
    replace: '      return refuse(RejectReason.STALE_CONN);',
  },
  {
    name: 'listener-leaves-with-device',
    what: 'A listener at any address ends with the device.',
    kind: 'check skipped',
    scene: 'reconnects',
    file: 'driver/cm/event-channel.ts',
    find: '      if (!isBound(id)) continue;',
    replace: "      if (id.state !== 'Listening' && !isBound(id)) continue;",
  },
  {
    name: 'removal-without-event',
    what: 'Connections of a device that was reset have no event.',
    kind: 'lost event',
    scene: 'reconnects',
    file: 'driver/cm/event-channel.ts',
    find: `      id.deviceRemoved();
`,
    replace: '',
  },
  {
    name: 'queue-of-one-more',
    what: 'A queue pair takes one receive more than it has places.',
    kind: 'comparison off by one',
    scene: 'ends-of-ranges',
    file: 'userlib/post-recv.ts',
    find: '+ count >= ring.wqeCount) error = ENOMEM;',
    replace: '+ count > ring.wqeCount) error = ENOMEM;',
  },
  {
    name: 'send-queue-of-one-less',
    what: 'A send queue takes one request fewer than was granted.',
    kind: 'comparison off by one',
    scene: 'ends-of-ranges',
    file: 'userlib/post-send.ts',
    find: '+ count >= ring.maxPost) return ENOMEM;',
    replace: '+ count >= ring.maxPost - 1) return ENOMEM;',
  },
  {
    name: 'cq-not-rounded-up',
    what: 'A CQ has as many places as were asked for, so that a full one looks empty.',
    kind: 'comparison off by one',
    scene: 'ends-of-ranges',
    file: 'userlib/cq.ts',
    find: '  return 2 ** log2Ceil(cqeMin + 1);',
    replace: '  return 2 ** log2Ceil(cqeMin);',
  },
  {
    name: 'gather-to-the-limit-but-one',
    what: 'A receive of as many buffers as were granted is refused.',
    kind: 'comparison off by one',
    scene: 'ends-of-ranges',
    file: 'userlib/post-recv.ts',
    find: `else if (!isValid(current, ring.maxSge)) error = EINVAL;
    if (error !== 0) break;
    const slot = (ring`,
    replace: `else if (!isValid(current, ring.maxSge - 1)) error = EINVAL;
    if (error !== 0) break;
    const slot = (ring`,
  },
  {
    name: 'arm-sequence-of-one-bit',
    what: 'The sequence number of arm requests has one bit.',
    kind: 'comparison off by one',
    scene: 'armed-in-any-order',
    file: 'userlib/poll-cq.ts',
    find: '((ring.armSequence & armSequenceBits) << armSequenceShift)',
    replace: '((ring.armSequence & 1) << armSequenceShift)',
  },
  {
    name: 'read-beyond-the-call',
    what: 'A call of recv(2) returns more bytes than it asked for.',
    kind: 'wrong length',
    scene: 'socket-streams',
    file: 'net/socket/transfer.ts',
    find: 'const count = Math.min(head.length, lengthBytes - done);',
    replace: 'const count = Math.min(head.length, lengthBytes);',
  },
  {
    name: 'fin-behind-a-gap',
    what: 'A FIN behind a gap ends the stream.',
    kind: 'check skipped',
    scene: 'socket-streams',
    file: 'protocol/tcp/segment-input.ts',
    find: 'if (connection.hasFin || end !== connection.received.next) return;',
    replace: 'if (connection.hasFin) return;',
  },
  {
    name: 'resend-from-the-middle',
    what: 'After a time-out sending continues after the lost segment.',
    kind: 'wrong order',
    scene: 'socket-streams',
    file: 'protocol/tcp/deadlines.ts',
    find: `    connection.sendNext = connection.sendUnacknowledged;
    connection.sendIndex = 0;
`,
    replace: `    connection.sendNext = connection.sendUnacknowledged;
`,
  },
  {
    name: 'nagle-waits-for-ever',
    what: 'A short segment waits although nothing is under way.',
    kind: 'check skipped',
    scene: 'socket-streams',
    file: 'protocol/tcp/output.ts',
    find: '  return isAfter(connection.smallEnd, connection.sendUnacknowledged);',
    replace: '  return !isBefore(connection.smallEnd, connection.sendUnacknowledged);',
  },
  {
    name: 'lost-syn-stays-lost',
    what: 'A SYN is not sent again.',
    kind: 'lost event',
    scene: 'socket-streams',
    file: 'protocol/tcp/deadlines.ts',
    find: `  if (isOpening) sendSyn(actor, connection);
  else if`,
    replace: `  if (isOpening) connection.isAckDue = false;
  else if`,
  },
  {
    name: 'half-closed-takes-nothing',
    what: 'What comes after the own FIN was acknowledged is dropped.',
    kind: 'check skipped',
    scene: 'socket-streams',
    file: 'protocol/tcp/segment-input.ts',
    find: `    connection.state === 'FIN_WAIT_1' ||
    connection.state === 'FIN_WAIT_2';`,
    replace: "    connection.state === 'FIN_WAIT_1';",
  },
  {
    name: 'room-not-given-back',
    what: 'Bytes that were read still take room in the receive buffer.',
    kind: 'resource not returned',
    scene: 'socket-streams',
    file: 'net/stack/receive-queue.ts',
    find: `    this.readableBytes -= bytes;
`,
    replace: '',
  },
  {
    name: 'gap-closed-too-early',
    what: 'Segments behind a gap are delivered while the gap is there.',
    kind: 'wrong order',
    scene: 'socket-streams',
    file: 'net/stack/receive-queue.ts',
    find: `    if (old < 0) return this.#keep(buffer);
    trimFront(buffer, old);`,
    replace: `    if (old < -65_535) return this.#keep(buffer);
    trimFront(buffer, Math.max(0, old));`,
  },
  {
    name: 'closed-port-is-silent',
    what: 'A SYN to a port without a listener is dropped.',
    kind: 'lost event',
    scene: 'socket-streams',
    file: 'net/stack/stack.ts',
    find: `      this.#refuse(cpu, segment, route);
      return;
    }
    // No room`,
    replace: `      return;
    }
    // No room`,
  },
  {
    name: 'buffer-lost-at-each-read',
    what: 'A buffer that was read whole is not given back.',
    kind: 'resource not returned',
    scene: 'socket-streams',
    file: 'net/stack/receive-queue.ts',
    find: `      this.#inOrder.shift();
      this.#buffers.give(buffer);
      emptied++;`,
    replace: `      this.#inOrder.shift();
      emptied++;`,
  },
  {
    name: 'refused-buffer-kept',
    what: 'The buffer of a segment that came before is not given back.',
    kind: 'resource not returned',
    scene: 'socket-streams',
    file: 'protocol/tcp/segment-input.ts',
    find: `  if (!isAcceptable(connection, segment, buffer.length)) {
    drop(connection, buffer);
`,
    replace: `  if (!isAcceptable(connection, segment, buffer.length)) {
`,
  },
  {
    name: 'transmit-ring-one-more',
    what: 'The transmit ring takes as many frames as it has descriptors.',
    kind: 'comparison off by one',
    scene: 'socket-streams',
    file: 'net/driver/transmit-ring.ts',
    find: '    return this.entries - 1 - this.outstanding;',
    replace: '    return this.entries - this.outstanding;',
  },
  {
    name: 'tag-not-inserted',
    what: 'Frames of a VLAN leave without their tag.',
    kind: 'check skipped',
    scene: 'socket-streams',
    file: 'net/driver/transmit-ring.ts',
    find: `      fields.insertTag.set(view, at, 1);
`,
    replace: '',
  },
  {
    name: 'checksum-from-the-start',
    what: 'The NIC sums from the first byte of the frame on.',
    kind: 'wrong address',
    scene: 'socket-streams',
    file: 'net/driver/transmit-ring.ts',
    find: `      fields.checksumStart.set(view, at, checksum.start);
`,
    replace: '',
  },
  {
    name: 'done-bit-stays',
    what: 'The descriptor of a frame keeps its done bit when it is given back.',
    kind: 'counter not reset',
    scene: 'socket-streams',
    file: 'net/driver/receive-ring.ts',
    find: `    bytes.fill(0, at, at + nicDescriptorBytes);
    fields.bufferAddress.setNumber(view, at, buffer.address);
    this.#held`,
    replace: `    fields.bufferAddress.setNumber(view, at, buffer.address);
    this.#held`,
  },
  {
    name: 'tries-add-up',
    what: 'Losses of a connection add up until it is given up, however much arrives between them.',
    kind: 'counter not reset',
    scene: 'socket-streams',
    file: 'protocol/tcp/segment-input.ts',
    find: `  connection.tries = 0;
  connection.retransmitPs = NEVER;
  return freed;`,
    replace: `  connection.retransmitPs = NEVER;
  return freed;`,
  },
  {
    name: 'tag-not-seen',
    what: 'The tag of a frame that came is not looked at.',
    kind: 'check skipped',
    scene: 'socket-streams',
    file: 'net/driver/receive-ring.ts',
    find: 'this.tag = fields.isTagged.get(view, at) === 1 ? fields.special.get(view, at) : noTag;',
    replace: 'this.tag = noTag;',
  },
  {
    name: 'stream-ends-with-the-fin',
    what: 'A FIN hides the bytes in front of it that were not read.',
    kind: 'wrong order',
    scene: 'socket-streams',
    file: 'net/socket/transfer.ts',
    find: `    if (connection.received.readableBytes > 0) return connection;
    const error`,
    replace: `    if (connection.received.readableBytes > 0 && !connection.hasFin) return connection;
    const error`,
  },
];
