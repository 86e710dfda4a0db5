export { LinkType } from './capture-layouts.ts';
export { CaptureError, readCapture } from './capture-reader.ts';
export { erfRecord, type WrittenPacket, writeCapture } from './capture-writer.ts';
export { packetsIn, readFrame } from './captured-packets.ts';
export { type Conversation, conversationsOf, type Utterance } from './conversation.ts';
