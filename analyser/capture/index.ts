export { LinkType } from './capture-layouts.ts';
export { CaptureError, readCapture } from './capture-reader.ts';
export { erfRecord, type WrittenPacket, writeCapture } from './capture-writer.ts';
export { type Conversation, conversationsOf, type Utterance } from './conversation.ts';
export { heardIn, readFrame } from './hear.ts';
