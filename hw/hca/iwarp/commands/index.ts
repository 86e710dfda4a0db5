/** Interface of this room: see ../README.md. */
export {
  closeTcp,
  type Mailboxes,
  openTcp,
  queryTcp,
  receiveTcp,
  sendTcp,
  type TcpCommand,
  type TcpCommandParts,
} from './tcp-commands.ts';
