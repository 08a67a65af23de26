package session

// For tests outside of the package.
const IdleReceipts = idleReceipts
