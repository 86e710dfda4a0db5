/**
 * The rules of the linter: one row for each demand of the interface sheet on a driver. The column `checkedIn` names the
 * file that checks a rule. A violation is reported once for each object, with the offending access.
 *
 * Severity: `error` breaks the interface and may do anything on a card; `warning` works on this device or by luck;
 * `note` is legal but worth knowing.
 */

export type Severity = 'error' | 'warning' | 'note';

export interface Rule {
  readonly severity: Severity;
  /** Section of the interface sheet. */
  readonly section: string;
  /** The demand of the sheet. */
  readonly demand: string;
}

const rule = (severity: Severity, section: string, demand: string): Rule => ({ severity, section, demand });

export const rules = {
  // Commands: lint/command-rules.ts
  'hcr-access': rule('error', '2.1', 'the HCR accepts 32-bit accesses only'),
  'hcr-reserved': rule('error', '2.2', 'reserved bits of the HCR are written as zero'),
  'command-busy': rule(
    'error',
    '2.2',
    'no command is posted before the one in the register has been accepted',
  ),
  'command-toggle': rule('error', '2.2', 'T inverts with each command; the first after a reset has T = 1'),
  'command-token': rule('error', '2.2, 6.7', 'commands outstanding at once have different tokens'),
  'command-opcode': rule('error', '3.4', 'the opcode is one of the table'),
  'command-modifier': rule('error', '3.4', 'an input or opcode modifier that has no meaning is zero'),
  'command-mailbox': rule('error', '3.1', 'a mailbox is one 4 KiB page of memory, 4 KiB aligned'),
  'mailbox-reserved': rule('error', '0.2', 'reserved fields of mailboxes and contexts are written as zero'),
  'command-phase': rule('error', '3.6, 3.10', 'RUN_FW follows MAP_FA; commands on objects follow INIT_HCA'),
  'command-index': rule(
    'error',
    '3.7',
    'object numbers, sizes and ports are within the limits of QUERY_DEV_CAP and INIT_HCA',
  ),
  'command-state': rule(
    'error',
    '3.15–3.17',
    'an object is created once, and used in a state that allows the command',
  ),
  // Memory donated to the device: lint/memory-rules.ts
  'memory-outside': rule(
    'error',
    '3.1, 3.6, 4.4',
    'addresses given to the device lie in memory that it can reach',
  ),
  'dma-outside': rule('error', '3.6, 4.4', 'the device is never made to access memory that is not there'),
  'icm-mapped-twice': rule('error', '3.6', 'an ICM page is mapped once, and a host page is given once'),
  'icm-unmap-unmapped': rule('warning', '3.6', 'a chunk that is unmapped has a page that is mapped'),
  'icm-unmap-in-use': rule('error', '4.2', 'ICM pages stay mapped while objects have entries in them'),
  'icm-not-mapped': rule(
    'error',
    '4.2, 4.3',
    "an object's context and translation entries lie in mapped ICM pages",
  ),
  'pages-unmap-in-use': rule('error', '3.6, 3.10', 'FA and AUX pages stay with the device until CLOSE_HCA'),
  'context-changed': rule('error', '4.2', 'tables other than MTT and dMPT belong to the device alone'),
  'mpt-changed': rule('error', '3.15', 'a live MPT entry is edited only between HW2SW_MPT and SYNC_TPT'),
  'mtt-not-present': rule('error', '4.4, 5.6', 'every translation entry that an object needs is present'),
  // Doorbells and queues: lint/queue-rules.ts
  'doorbell-unknown-qp': rule('error', '6.9', 'the send doorbell names a QP that lives'),
  'doorbell-qp-state': rule('error', '3.17, 6.9', 'work is posted to a QP in RTS, SQD or an error state'),
  'doorbell-foreign-uar': rule(
    'error',
    '5.1, 5.2, 6.9',
    'doorbells come by the UAR page that the context names',
  ),
  'doorbell-offset': rule('error', '6.9', 'a UAR page is written at the defined offsets and sizes only'),
  'doorbell-reserved': rule('error', '6.9', 'reserved bits of doorbells are written as zero'),
  'doorbell-without-work': rule(
    'error',
    '6.2',
    'a doorbell follows a WQE whose owner bit is that of its pass',
  ),
  'blueflame-differs': rule('error', '6.9', 'a BlueFlame post is the next WQE, as it lies in memory'),
  'wqe-opcode': rule('error', '6.4', 'the opcode is defined, and allowed on the QP'),
  'wqe-size': rule('error', '6.3', 'a WQE holds the segments of its opcode, and fits its queue'),
  'wqe-reserved': rule('error', '6.3', 'reserved fields of WQEs are written as zero'),
  'cq-arm-unknown': rule('error', '6.9', 'the arm register names a CQ that lives, and a command'),
  'cq-arm-sequence': rule(
    'error',
    '6.9',
    "an arm carries the CQ's sequence number: one more than events fired, or one less in a race",
  ),
  'cq-consumer-ahead': rule('error', '6.6, 6.8', 'software has not consumed CQEs that were not written'),
  'eq-doorbell-unknown': rule('error', '6.9', 'the doorbell is of an EQ that lives'),
  'eq-consumer-ahead': rule('error', '6.7, 6.9', 'software has not consumed EQEs that were not written'),
  'receive-overrun': rule('error', '6.8', 'a receive queue is never posted more than it holds'),
  // Life cycle: lint/resource-rules.ts
  'use-after-destroy': rule(
    'error',
    '3.16, 3.17',
    'an object is not used after the command that destroyed it',
  ),
  'left-at-close': rule(
    'error',
    '3.10, 8',
    'QPs, CQs, SRQs, EQs and regions are given back before CLOSE_HCA',
  ),
  'left-at-release': rule(
    'error',
    '2.5, 3.6',
    'ICM, AUX and FA pages are taken back before the device is released',
  ),
  'left-at-reset': rule(
    'note',
    '2.3',
    'a reset takes back what was not: legal, and how a crash is recovered from',
  ),
} as const satisfies Readonly<Record<string, Rule>>;

export type RuleName = keyof typeof rules;
