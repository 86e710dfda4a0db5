/** Ready-to-receive messages: the first one of an initiator in peer-to-peer mode (RFC 6581, 4.3). Kinds are bits, so that a set is a number. */
export const ReadyMessage = { NONE: 0, SEND: 1, WRITE: 2, READ: 4 } as const;
