-- What a file of a workspace carries that was written by a call: it stays until it is written anew.
CREATE TABLE file_labels (
    place TEXT NOT NULL,
    path TEXT NOT NULL,
    labels INTEGER NOT NULL,
    PRIMARY KEY (place, path)
);
